// The part of cuDNN that Slipstream uses: convolutions of fp32 images, row-major. It first proposes
// algorithms that must not be used, then the right one, and refuses to run any other.

#include <cudnn.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "tests/gpu/simulated/convolution.h"
#include "tests/gpu/simulated/library_calls.h"
#include "tests/gpu/simulated/memory.h"
#include "tests/gpu/simulated/streams.h"
#include "worker/compute/cuda/cuda_libraries.h"

namespace slipstream::simulated {
namespace {

constexpr size_t kWorkspaceBytes = size_t{1} << 20;
constexpr size_t kTooManyBytes = size_t{1} << 40;

struct Geometry {
  int padding = 0;
  int stride = 1;
  cudnnMathType_t math = CUDNN_DEFAULT_MATH;
};

template <typename Owned, typename Descriptor>
cudnnStatus_t New(Descriptor* descriptor) {
  *descriptor = Given<Descriptor>(new Owned);
  return CUDNN_STATUS_SUCCESS;
}

template <typename Owned, typename Descriptor>
cudnnStatus_t Delete(Descriptor descriptor) {
  delete &Of<Owned>(descriptor);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t SetStream(cudnnHandle_t handle, cudaStream_t stream) {
  Of<LibraryHandle>(handle).stream = stream;
  return CUDNN_STATUS_SUCCESS;
}

const char* GetErrorString(cudnnStatus_t) { return "refused by the simulated cuDNN"; }

cudnnStatus_t SetTensor4dDescriptor(cudnnTensorDescriptor_t tensor, cudnnTensorFormat_t format,
                                    cudnnDataType_t type, int count, int channels, int height,
                                    int width) {
  if (format != CUDNN_TENSOR_NCHW || type != CUDNN_DATA_FLOAT) return CUDNN_STATUS_NOT_SUPPORTED;
  Of<Images>(tensor) = {count, channels, height, width};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t SetFilter4dDescriptor(cudnnFilterDescriptor_t filter, cudnnDataType_t type,
                                    cudnnTensorFormat_t format, int count, int channels, int height,
                                    int width) {
  if (format != CUDNN_TENSOR_NCHW || type != CUDNN_DATA_FLOAT) return CUDNN_STATUS_NOT_SUPPORTED;
  Of<Images>(filter) = {count, channels, height, width};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t SetConvolution2dDescriptor(cudnnConvolutionDescriptor_t geometry, int padding_y,
                                         int padding_x, int stride_y, int stride_x, int dilation_y,
                                         int dilation_x, cudnnConvolutionMode_t mode,
                                         cudnnDataType_t type) {
  const bool is_known = padding_y == padding_x && stride_y == stride_x && dilation_y == 1 &&
                        dilation_x == 1 && mode == CUDNN_CROSS_CORRELATION &&
                        type == CUDNN_DATA_FLOAT;
  if (!is_known) return CUDNN_STATUS_NOT_SUPPORTED;
  Of<Geometry>(geometry).padding = padding_x;
  Of<Geometry>(geometry).stride = stride_x;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t SetConvolutionMathType(cudnnConvolutionDescriptor_t geometry, cudnnMathType_t math) {
  Of<Geometry>(geometry).math = math;
  return CUDNN_STATUS_SUCCESS;
}

template <typename Found, typename Algorithm>
void Propose(Found* found, int& count, Algorithm algorithm, cudnnDeterminism_t determinism,
             size_t bytes) {
  Found& proposed = found[count++];
  proposed = {};
  proposed.algo = algorithm;
  proposed.determinism = determinism;
  proposed.memory = bytes;
  proposed.mathType = CUDNN_DEFAULT_MATH;
}

cudnnStatus_t GetForwardAlgorithm(cudnnHandle_t handle, cudnnTensorDescriptor_t,
                                  cudnnFilterDescriptor_t, cudnnConvolutionDescriptor_t,
                                  cudnnTensorDescriptor_t, int, int* count,
                                  cudnnConvolutionFwdAlgoPerf_t* found) {
  if (!IsHere(handle)) return CUDNN_STATUS_BAD_PARAM;
  *count = 0;
  Propose(found, *count, CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD, CUDNN_DETERMINISTIC, 0);
  Propose(found, *count, CUDNN_CONVOLUTION_FWD_ALGO_GEMM, CUDNN_DETERMINISTIC, 0);
  Propose(found, *count, CUDNN_CONVOLUTION_FWD_ALGO_DIRECT, CUDNN_DETERMINISTIC, 0);
  Propose(found, *count, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, CUDNN_DETERMINISTIC,
          kWorkspaceBytes);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t GetDataAlgorithm(cudnnHandle_t handle, cudnnFilterDescriptor_t,
                               cudnnTensorDescriptor_t, cudnnConvolutionDescriptor_t,
                               cudnnTensorDescriptor_t, int, int* count,
                               cudnnConvolutionBwdDataAlgoPerf_t* found) {
  if (!IsHere(handle)) return CUDNN_STATUS_BAD_PARAM;
  *count = 0;
  Propose(found, *count, CUDNN_CONVOLUTION_BWD_DATA_ALGO_0, CUDNN_NON_DETERMINISTIC, 0);
  Propose(found, *count, CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, CUDNN_DETERMINISTIC, kWorkspaceBytes);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t GetFilterAlgorithm(cudnnHandle_t handle, cudnnTensorDescriptor_t,
                                 cudnnTensorDescriptor_t, cudnnConvolutionDescriptor_t,
                                 cudnnFilterDescriptor_t, int, int* count,
                                 cudnnConvolutionBwdFilterAlgoPerf_t* found) {
  if (!IsHere(handle)) return CUDNN_STATUS_BAD_PARAM;
  *count = 0;
  Propose(found, *count, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_3, CUDNN_NON_DETERMINISTIC, 0);
  Propose(found, *count, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, CUDNN_DETERMINISTIC, kWorkspaceBytes);
  return CUDNN_STATUS_SUCCESS;
}

// The real workspace sizes, whatever was proposed: one algorithm needs too much, and others do not
// support these images.

cudnnStatus_t GetForwardWorkspace(cudnnHandle_t, cudnnTensorDescriptor_t, cudnnFilterDescriptor_t,
                                  cudnnConvolutionDescriptor_t, cudnnTensorDescriptor_t,
                                  cudnnConvolutionFwdAlgo_t algorithm, size_t* bytes) {
  if (algorithm == CUDNN_CONVOLUTION_FWD_ALGO_DIRECT ||
      algorithm == CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD) {
    return CUDNN_STATUS_NOT_SUPPORTED;
  }
  *bytes = algorithm == CUDNN_CONVOLUTION_FWD_ALGO_GEMM ? kTooManyBytes : kWorkspaceBytes;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t GetDataWorkspace(cudnnHandle_t, cudnnFilterDescriptor_t, cudnnTensorDescriptor_t,
                               cudnnConvolutionDescriptor_t, cudnnTensorDescriptor_t,
                               cudnnConvolutionBwdDataAlgo_t, size_t* bytes) {
  *bytes = kWorkspaceBytes;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t GetFilterWorkspace(cudnnHandle_t, cudnnTensorDescriptor_t, cudnnTensorDescriptor_t,
                                 cudnnConvolutionDescriptor_t, cudnnFilterDescriptor_t,
                                 cudnnConvolutionBwdFilterAlgo_t, size_t* bytes) {
  *bytes = kWorkspaceBytes;
  return CUDNN_STATUS_SUCCESS;
}

/// An array of fp32, as passed to a call.
struct Array {
  const void* values;
  int size;

  bool IsUsable() const { return IsOnDevice(values, static_cast<size_t>(size) * sizeof(float)); }

  /// Returns the values as the units that `math` allows read them.
  std::vector<float> Read(cudnnMathType_t math) const {
    const auto* begin = static_cast<const float*>(values);
    std::vector<float> read(begin, begin + size);
    if (math != CUDNN_FMA_MATH) std::ranges::transform(read, read.begin(), AsTf32);
    return read;
  }
};

struct Workspace {
  void* memory;
  size_t bytes;
};

bool IsPlain(const void* alpha, const void* beta) {
  return *static_cast<const float*>(alpha) == 1 && *static_cast<const float*>(beta) == 0;
}

/// Enqueues compute(first operand, second operand, result). `algorithm` is one of the algorithms of
/// `direction`.
cudnnStatus_t Run(cudnnHandle_t handle, const Convolution& convolution, uint64_t direction,
                  uint64_t algorithm, cudnnMathType_t math, const Workspace& workspace,
                  const std::vector<Array>& operands, const Array& result,
                  std::function<void(const float*, const float*, float*)> compute) {
  const bool are_usable = std::ranges::all_of(operands, &Array::IsUsable) && result.IsUsable() &&
                          IsOnDevice(workspace.memory, workspace.bytes);
  if (!convolution.Fits() || !are_usable || workspace.bytes < kWorkspaceBytes) {
    return CUDNN_STATUS_BAD_PARAM;
  }
  auto& here = Of<LibraryHandle>(handle);
  const std::vector<uint64_t> kind = {direction, algorithm, static_cast<uint64_t>(result.size),
                                      static_cast<uint64_t>(operands[0].size)};
  if (!here.MayCall(here.stream, kind)) return CUDNN_STATUS_NOT_INITIALIZED;
  const cudaError_t error = Enqueue(here.stream, [=, compute = std::move(compute)] {
    Spoil(workspace.memory, kWorkspaceBytes);
    compute(operands[0].Read(math).data(), operands[1].Read(math).data(),
            static_cast<float*>(const_cast<void*>(result.values)));
  });
  return error == cudaSuccess ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_EXECUTION_FAILED;
}

/// Returns another order for each call; in a graph, for each capture.
unsigned AnyOrder() {
  static std::atomic<unsigned> calls = 0;
  return ++calls;
}

Convolution ConvolutionOf(cudnnTensorDescriptor_t in, cudnnFilterDescriptor_t filter,
                          cudnnConvolutionDescriptor_t geometry, cudnnTensorDescriptor_t out) {
  const auto& [padding, stride, math] = Of<Geometry>(geometry);
  return {Of<Images>(in), Of<Images>(filter), Of<Images>(out), padding, stride};
}

cudnnStatus_t Forward(cudnnHandle_t handle, const void* alpha, cudnnTensorDescriptor_t in,
                      const void* input, cudnnFilterDescriptor_t filters, const void* filter,
                      cudnnConvolutionDescriptor_t geometry, cudnnConvolutionFwdAlgo_t algorithm,
                      void* workspace, size_t bytes, const void* beta, cudnnTensorDescriptor_t out,
                      void* output) {
  if (algorithm != CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM || !IsPlain(alpha, beta)) {
    return CUDNN_STATUS_NOT_SUPPORTED;
  }
  const Convolution c = ConvolutionOf(in, filters, geometry, out);
  return Run(handle, c, 0, algorithm, Of<Geometry>(geometry).math, {workspace, bytes},
             {{input, c.in.size()}, {filter, c.filters.size()}}, {output, c.out.size()},
             [c](const float* one, const float* other, float* to) { c.Forward(one, other, to); });
}

cudnnStatus_t BackwardData(cudnnHandle_t handle, const void* alpha, cudnnFilterDescriptor_t filters,
                           const void* filter, cudnnTensorDescriptor_t out, const void* gradient,
                           cudnnConvolutionDescriptor_t geometry,
                           cudnnConvolutionBwdDataAlgo_t algorithm, void* workspace, size_t bytes,
                           const void* beta, cudnnTensorDescriptor_t in, void* input_gradient) {
  const bool is_any_order = algorithm == CUDNN_CONVOLUTION_BWD_DATA_ALGO_0;
  if ((!is_any_order && algorithm != CUDNN_CONVOLUTION_BWD_DATA_ALGO_1) || !IsPlain(alpha, beta)) {
    return CUDNN_STATUS_NOT_SUPPORTED;
  }
  Convolution c = ConvolutionOf(in, filters, geometry, out);
  if (is_any_order) c.first = AnyOrder();
  return Run(
      handle, c, 1, algorithm, Of<Geometry>(geometry).math, {workspace, bytes},
      {{filter, c.filters.size()}, {gradient, c.out.size()}}, {input_gradient, c.in.size()},
      [c](const float* one, const float* other, float* to) { c.InputGradient(one, other, to); });
}

cudnnStatus_t BackwardFilter(cudnnHandle_t handle, const void* alpha, cudnnTensorDescriptor_t in,
                             const void* input, cudnnTensorDescriptor_t out, const void* gradient,
                             cudnnConvolutionDescriptor_t geometry,
                             cudnnConvolutionBwdFilterAlgo_t algorithm, void* workspace,
                             size_t bytes, const void* beta, cudnnFilterDescriptor_t filters,
                             void* filter_gradient) {
  const bool is_any_order = algorithm == CUDNN_CONVOLUTION_BWD_FILTER_ALGO_3;
  if ((!is_any_order && algorithm != CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1) ||
      !IsPlain(alpha, beta)) {
    return CUDNN_STATUS_NOT_SUPPORTED;
  }
  Convolution c = ConvolutionOf(in, filters, geometry, out);
  if (is_any_order) c.first = AnyOrder();
  return Run(
      handle, c, 2, algorithm, Of<Geometry>(geometry).math, {workspace, bytes},
      {{input, c.in.size()}, {gradient, c.out.size()}}, {filter_gradient, c.filters.size()},
      [c](const float* one, const float* other, float* to) { c.FilterGradient(one, other, to); });
}

constexpr cuda::Cudnn kTable = {
    .Create = New<LibraryHandle, cudnnHandle_t>,
    .Destroy = Delete<LibraryHandle, cudnnHandle_t>,
    .SetStream = SetStream,
    .GetErrorString = GetErrorString,
    .CreateTensorDescriptor = New<Images, cudnnTensorDescriptor_t>,
    .DestroyTensorDescriptor = Delete<Images, cudnnTensorDescriptor_t>,
    .SetTensor4dDescriptor = SetTensor4dDescriptor,
    .CreateFilterDescriptor = New<Images, cudnnFilterDescriptor_t>,
    .DestroyFilterDescriptor = Delete<Images, cudnnFilterDescriptor_t>,
    .SetFilter4dDescriptor = SetFilter4dDescriptor,
    .CreateConvolutionDescriptor = New<Geometry, cudnnConvolutionDescriptor_t>,
    .DestroyConvolutionDescriptor = Delete<Geometry, cudnnConvolutionDescriptor_t>,
    .SetConvolution2dDescriptor = SetConvolution2dDescriptor,
    .SetConvolutionMathType = SetConvolutionMathType,
    .GetConvolutionForwardAlgorithm = GetForwardAlgorithm,
    .GetConvolutionBackwardDataAlgorithm = GetDataAlgorithm,
    .GetConvolutionBackwardFilterAlgorithm = GetFilterAlgorithm,
    .FindConvolutionForwardAlgorithm = GetForwardAlgorithm,
    .FindConvolutionBackwardDataAlgorithm = GetDataAlgorithm,
    .FindConvolutionBackwardFilterAlgorithm = GetFilterAlgorithm,
    .GetConvolutionForwardWorkspaceSize = GetForwardWorkspace,
    .GetConvolutionBackwardDataWorkspaceSize = GetDataWorkspace,
    .GetConvolutionBackwardFilterWorkspaceSize = GetFilterWorkspace,
    .ConvolutionForward = Forward,
    .ConvolutionBackwardData = BackwardData,
    .ConvolutionBackwardFilter = BackwardFilter,
};

}  // namespace
}  // namespace slipstream::simulated

namespace slipstream::cuda {

absl::StatusOr<const Cudnn*> Cudnn::Load() { return &simulated::kTable; }

}  // namespace slipstream::cuda
