#include "worker/compute/cuda/conv_descriptors.h"

#include "worker/compute/cuda/cuda_status.h"

namespace slipstream::cuda {
namespace {

template <typename Owned, typename Create>
absl::Status New(Owned& owned, Create create) {
  typename Owned::pointer descriptor = nullptr;
  PS_RETURN_IF_CUDA_ERROR(create(&descriptor));
  owned.reset(descriptor);
  return absl::OkStatus();
}

absl::Status SetTensor(const Cudnn& dnn, cudnnTensorDescriptor_t tensor, uint32_t count,
                       const ExampleShape& shape) {
  return PS_CUDA_STATUS(
      dnn.SetTensor4dDescriptor(tensor, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT,
                                static_cast<int>(count), static_cast<int>(shape.channels),
                                static_cast<int>(shape.height), static_cast<int>(shape.width)));
}

}  // namespace

absl::StatusOr<ConvDescriptors> ConvDescriptors::New(const Cudnn& dnn, const Conv2dShape& shape) {
  ConvDescriptors made(dnn);
  PS_RETURN_IF_ERROR(cuda::New(made.input_, dnn.CreateTensorDescriptor));
  PS_RETURN_IF_ERROR(cuda::New(made.output_, dnn.CreateTensorDescriptor));
  PS_RETURN_IF_ERROR(cuda::New(made.filter_, dnn.CreateFilterDescriptor));
  PS_RETURN_IF_ERROR(cuda::New(made.geometry_, dnn.CreateConvolutionDescriptor));
  PS_RETURN_IF_ERROR(made.SetCount(dnn, shape, 1));
  const auto kernel = static_cast<int>(shape.kernel);
  PS_RETURN_IF_CUDA_ERROR(dnn.SetFilter4dDescriptor(
      made.filter(), CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, static_cast<int>(shape.output.channels),
      static_cast<int>(shape.input.channels), kernel, kernel));
  const auto padding = static_cast<int>(shape.padding);
  const auto stride = static_cast<int>(shape.stride);
  PS_RETURN_IF_CUDA_ERROR(dnn.SetConvolution2dDescriptor(made.geometry(), padding, padding, stride,
                                                         stride, 1, 1, CUDNN_CROSS_CORRELATION,
                                                         CUDNN_DATA_FLOAT));
  return made;
}

absl::Status ConvDescriptors::SetCount(const Cudnn& dnn, const Conv2dShape& shape, uint32_t count) {
  PS_RETURN_IF_ERROR(SetTensor(dnn, input(), count, shape.input));
  return SetTensor(dnn, output(), count, shape.output);
}

}  // namespace slipstream::cuda
