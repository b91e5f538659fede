#include "worker/compute/cuda/cuda_plain_nodes.h"

#include <utility>

#include "worker/compute/cuda/cuda_status.h"
#include "worker/compute/cuda/lrn_kernels.h"
#include "worker/compute/cuda/pool_kernels.h"
#include "worker/compute/cuda/vector_kernels.h"

namespace slipstream::cuda {

absl::StatusOr<std::unique_ptr<CudaNode>> CudaPoolNode::New(const DeviceContext& context,
                                                            const PoolShape& shape,
                                                            uint32_t batch_size_max, bool trains) {
  std::unique_ptr<CudaPoolNode> node(new CudaPoolNode(context, shape));
  if (trains && shape.kind == PoolLayer::Kind::kMax) {
    PS_RETURN_IF_ERROR(
        Keep(node->places_, DeviceArray<uint32_t>::Allocate(
                                batch_size_max * shape.output.elements(), "the places of maxima")));
  }
  return node;
}

absl::Status CudaPoolNode::Forward(const CudaPass& pass, const float* input, float* output) {
  return PoolForward(context_.compute(), shape_, pass.count, input, output,
                     pass.training ? places_.data() : nullptr);
}

absl::Status CudaPoolNode::Backward(const CudaPass& pass, const float*, const float*,
                                    float* output_gradient, float* input_gradient) {
  if (input_gradient == nullptr) return absl::OkStatus();
  return PoolInputGradient(context_.compute(), shape_, pass.count, places_.data(), output_gradient,
                           input_gradient);
}

absl::StatusOr<std::unique_ptr<CudaNode>> CudaLrnNode::New(const DeviceContext& context,
                                                           const LrnShape& shape,
                                                           uint32_t batch_size_max, bool trains) {
  std::unique_ptr<CudaLrnNode> node(new CudaLrnNode(context, shape));
  if (trains) {
    PS_RETURN_IF_ERROR(
        Keep(node->scales_, DeviceArray<float>::Allocate(batch_size_max * shape.image.elements(),
                                                         "the sums of normalisation windows")));
  }
  return node;
}

absl::Status CudaLrnNode::Forward(const CudaPass& pass, const float* input, float* output) {
  return LrnForward(context_.compute(), shape_, pass.count, input, output,
                    pass.training ? scales_.data() : nullptr);
}

absl::Status CudaLrnNode::Backward(const CudaPass& pass, const float* input, const float* output,
                                   float* output_gradient, float* input_gradient) {
  if (input_gradient == nullptr) return absl::OkStatus();
  return LrnInputGradient(context_.compute(), shape_, pass.count,
                          {input, output, scales_.data(), output_gradient}, input_gradient);
}

absl::Status CudaActivationNode::Forward(const CudaPass& pass, const float* input, float* output) {
  return Activate(context_.compute(), activation_, pass.count * elements_, input, output);
}

absl::Status CudaActivationNode::Backward(const CudaPass& pass, const float*, const float* output,
                                          float* output_gradient, float* input_gradient) {
  if (input_gradient == nullptr) return absl::OkStatus();
  return ActivationInputGradient(context_.compute(), activation_, pass.count * elements_, output,
                                 output_gradient, input_gradient);
}

absl::Status CudaDropoutNode::Forward(const CudaPass& pass, const float* input, float* output) {
  const size_t size = pass.count * elements_;
  if (!pass.training) return Activate(context_.compute(), Activation::kNone, size, input, output);
  return Dropout(context_.compute(), draws_, pass.inputs, pass.first_example * elements_, size,
                 input, output);
}

absl::Status CudaDropoutNode::Backward(const CudaPass& pass, const float*, const float*,
                                       float* output_gradient, float* input_gradient) {
  if (input_gradient == nullptr) return absl::OkStatus();
  return Dropout(context_.compute(), draws_, pass.inputs, pass.first_example * elements_,
                 pass.count * elements_, output_gradient, input_gradient);
}

}  // namespace slipstream::cuda
