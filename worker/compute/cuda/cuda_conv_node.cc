#include "worker/compute/cuda/cuda_conv_node.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "worker/compute/cuda/cuda_status.h"
#include "worker/compute/cuda/vector_kernels.h"

namespace slipstream::cuda {
namespace {

constexpr int kAlgorithmsMax = 16;  // cuDNN has at most ten for each direction.

constexpr size_t kWorkspaceMin = size_t{32} << 20;
constexpr size_t kWorkspaceMax = size_t{1} << 30;

// cuDNN's name for fp32 says what it excludes: DEFAULT_MATH rounds operands to tf32.
cudnnMathType_t MathOf(Precision precision) {
  return precision == Precision::kFp32 ? CUDNN_FMA_MATH : CUDNN_DEFAULT_MATH;
}

// True if the algorithm sums the products themselves. The CPU's kernels do so too, and the results
// are close to theirs.
bool SumsProducts(cudnnConvolutionFwdAlgo_t algorithm) {
  return algorithm == CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM ||
         algorithm == CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM ||
         algorithm == CUDNN_CONVOLUTION_FWD_ALGO_GEMM ||
         algorithm == CUDNN_CONVOLUTION_FWD_ALGO_DIRECT;
}

bool SumsProducts(cudnnConvolutionBwdFilterAlgo_t algorithm) {
  return algorithm == CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0 ||
         algorithm == CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1 ||
         algorithm == CUDNN_CONVOLUTION_BWD_FILTER_ALGO_3;
}

bool SumsProducts(cudnnConvolutionBwdDataAlgo_t algorithm) {
  return algorithm == CUDNN_CONVOLUTION_BWD_DATA_ALGO_0 ||
         algorithm == CUDNN_CONVOLUTION_BWD_DATA_ALGO_1;
}

}  // namespace

absl::StatusOr<std::unique_ptr<CudaNode>> CudaConvNode::New(const DeviceContext& context,
                                                            const Options& options) {
  absl::StatusOr<ConvDescriptors> descriptors = ConvDescriptors::New(context.dnn(), options.shape);
  if (!descriptors.ok()) return descriptors.status();
  return std::unique_ptr<CudaNode>(new CudaConvNode(context, options, *std::move(descriptors)));
}

// Algorithms for math units with other layouts copy the operands and results of whole batches, and
// may add up parts of a result. ChannelSums needs less.
size_t CudaConvNode::workspace_bytes() const {
  const Conv2dShape& shape = options_.shape;
  const size_t images =
      options_.batch_size_max * (shape.input.elements() + shape.output.elements());
  return std::clamp(2 * images * sizeof(float), kWorkspaceMin, kWorkspaceMax);
}

template <typename Found, typename Algorithm, typename WorkspaceOf>
absl::Status CudaConvNode::Choose(std::span<const Found> found, const char* what,
                                  WorkspaceOf workspace_of, Chosen<Algorithm>& chosen) const {
  const bool is_fp32 = options_.precision == Precision::kFp32;
  // An algorithm that is proposed for other math units may be slower on those that fp32 uses, so
  // they come second.
  for (const bool of_other_units : {false, true}) {
    for (const Found& here : found) {
      if (here.status != CUDNN_STATUS_SUCCESS) continue;
      const bool is_near_and_repeatable =
          SumsProducts(here.algo) && here.determinism == CUDNN_DETERMINISTIC;
      if (options_.deterministic && !is_near_and_repeatable) continue;
      if (is_fp32 && !of_other_units && here.mathType != CUDNN_FMA_MATH) continue;
      const cudnnMathType_t math = is_fp32 ? CUDNN_FMA_MATH : here.mathType;
      PS_RETURN_IF_ERROR(Use(math));
      size_t bytes = 0;
      const bool is_taken = workspace_of(here.algo, &bytes) == CUDNN_STATUS_SUCCESS;
      if (!is_taken || bytes > workspace_bytes()) continue;
      chosen = {here.algo, math};
      return absl::OkStatus();
    }
  }
  const char* const kind = options_.deterministic ? "deterministic " : "";
  const char* const remedy = options_.deterministic ? "; set compute.deterministic to false" : "";
  return absl::InternalError(absl::StrCat("cuDNN has no ", kind, "algorithm for ", what,
                                          " that needs at most ", workspace_bytes(),
                                          " bytes of workspace", remedy));
}

absl::Status CudaConvNode::Prepare(uint32_t count) {
  PS_RETURN_IF_ERROR(descriptors_.SetCount(context_.dnn(), options_.shape, count));
  PS_RETURN_IF_ERROR(ChooseForward());
  if (!options_.trains) return absl::OkStatus();
  PS_RETURN_IF_ERROR(ChooseFilterGradient());
  return options_.wants_input_gradient ? ChooseInputGradient() : absl::OkStatus();
}

template <typename Found, typename Find, typename WorkspaceOf, typename Algorithm>
absl::Status CudaConvNode::ChooseFrom(const char* what, Find find, WorkspaceOf workspace_of,
                                      Chosen<Algorithm>& chosen) const {
  PS_RETURN_IF_ERROR(Use(MathOf(options_.precision)));
  std::array<Found, kAlgorithmsMax> found;
  int count = 0;
  PS_RETURN_IF_CUDA_ERROR(find(kAlgorithmsMax, &count, found.data()));
  const std::span<const Found> proposed = std::span(found).first(static_cast<size_t>(count));
  return Choose(proposed, what, workspace_of, chosen);
}

absl::Status CudaConvNode::ChooseForward() {
  const Cudnn& dnn = context_.dnn();
  const ConvDescriptors& d = descriptors_;
  const auto of_this = [&](auto function) {
    return [&, function](auto... rest) {
      return function(context_.dnn_handle(), d.input(), d.filter(), d.geometry(), d.output(),
                      rest...);
    };
  };
  return ChooseFrom<cudnnConvolutionFwdAlgoPerf_t>(
      "a convolution",
      of_this(options_.deterministic ? dnn.GetConvolutionForwardAlgorithm
                                     : dnn.FindConvolutionForwardAlgorithm),
      of_this(dnn.GetConvolutionForwardWorkspaceSize), forward_);
}

absl::Status CudaConvNode::ChooseFilterGradient() {
  const Cudnn& dnn = context_.dnn();
  const ConvDescriptors& d = descriptors_;
  const auto of_this = [&](auto function) {
    return [&, function](auto... rest) {
      return function(context_.dnn_handle(), d.input(), d.output(), d.geometry(), d.filter(),
                      rest...);
    };
  };
  return ChooseFrom<cudnnConvolutionBwdFilterAlgoPerf_t>(
      "a convolution's weight gradient",
      of_this(options_.deterministic ? dnn.GetConvolutionBackwardFilterAlgorithm
                                     : dnn.FindConvolutionBackwardFilterAlgorithm),
      of_this(dnn.GetConvolutionBackwardFilterWorkspaceSize), filter_gradient_);
}

absl::Status CudaConvNode::ChooseInputGradient() {
  const Cudnn& dnn = context_.dnn();
  const ConvDescriptors& d = descriptors_;
  const auto of_this = [&](auto function) {
    return [&, function](auto... rest) {
      return function(context_.dnn_handle(), d.filter(), d.output(), d.geometry(), d.input(),
                      rest...);
    };
  };
  return ChooseFrom<cudnnConvolutionBwdDataAlgoPerf_t>(
      "a convolution's input gradient",
      of_this(options_.deterministic ? dnn.GetConvolutionBackwardDataAlgorithm
                                     : dnn.FindConvolutionBackwardDataAlgorithm),
      of_this(dnn.GetConvolutionBackwardDataWorkspaceSize), input_gradient_);
}

absl::Status CudaConvNode::Use(cudnnMathType_t math) const {
  return PS_CUDA_STATUS(context_.dnn().SetConvolutionMathType(descriptors_.geometry(), math));
}

absl::Status CudaConvNode::Forward(const CudaPass& pass, const float* input, float* output) {
  const ConvDescriptors& d = descriptors_;
  const ExampleShape& out = options_.shape.output;
  const float one = 1;
  const float zero = 0;
  PS_RETURN_IF_ERROR(Use(forward_.math));
  PS_RETURN_IF_CUDA_ERROR(context_.dnn().ConvolutionForward(
      context_.dnn_handle(), &one, d.input(), input, d.filter(),
      pass.weights + options_.parameters.weight, d.geometry(), forward_.algorithm, pass.workspace,
      pass.workspace_bytes, &zero, d.output(), output));
  return AddBias(context_.compute(), options_.activation, pass.count, out.channels,
                 out.height * out.width, pass.weights + options_.parameters.bias, output);
}

absl::Status CudaConvNode::Backward(const CudaPass& pass, const float* input, const float* output,
                                    float* output_gradient, float* input_gradient) {
  const Cudnn& dnn = context_.dnn();
  const cudnnHandle_t handle = context_.dnn_handle();
  const ConvDescriptors& d = descriptors_;
  const float one = 1;
  const float zero = 0;
  if (options_.activation != Activation::kNone) {
    PS_RETURN_IF_ERROR(ActivationInputGradient(context_.compute(), options_.activation,
                                               pass.count * options_.shape.output.elements(),
                                               output, output_gradient, output_gradient));
  }
  const ExampleShape& out = options_.shape.output;
  PS_RETURN_IF_ERROR(ChannelSums(
      context_.compute(), pass.count, out.channels, out.height * out.width, output_gradient,
      static_cast<float*>(pass.workspace), pass.gradients + options_.parameters.bias));
  PS_RETURN_IF_ERROR(Use(filter_gradient_.math));
  PS_RETURN_IF_CUDA_ERROR(dnn.ConvolutionBackwardFilter(
      handle, &one, d.input(), input, d.output(), output_gradient, d.geometry(),
      filter_gradient_.algorithm, pass.workspace, pass.workspace_bytes, &zero, d.filter(),
      pass.gradients + options_.parameters.weight));
  PS_RETURN_IF_ERROR(pass.gradients_enqueued());
  if (input_gradient == nullptr) return absl::OkStatus();
  PS_RETURN_IF_ERROR(Use(input_gradient_.math));
  return PS_CUDA_STATUS(dnn.ConvolutionBackwardData(
      handle, &one, d.filter(), pass.weights + options_.parameters.weight, d.output(),
      output_gradient, d.geometry(), input_gradient_.algorithm, pass.workspace,
      pass.workspace_bytes, &zero, d.input(), input_gradient));
}

}  // namespace slipstream::cuda
