#ifndef SLIPSTREAM_WORKER_COMPUTE_CUDA_CONV_DESCRIPTORS_H_
#define SLIPSTREAM_WORKER_COMPUTE_CUDA_CONV_DESCRIPTORS_H_

#include <cudnn.h>

#include <memory>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/compute/cuda/cuda_libraries.h"
#include "worker/compute/layer_shapes.h"

namespace slipstream::cuda {

/// cuDNN's descriptors of a convolution: its fp32 tensors in NCHW, its filter and geometry.
///
/// Not thread-safe: owned by one node.
class ConvDescriptors {
 public:
  /// `dnn` must outlive the descriptors.
  static absl::StatusOr<ConvDescriptors> New(const Cudnn& dnn, const Conv2dShape& shape);

  /// Sets the number of examples of a batch; 1 at first.
  absl::Status SetCount(const Cudnn& dnn, const Conv2dShape& shape, uint32_t count);

  cudnnTensorDescriptor_t input() const { return input_.get(); }
  cudnnTensorDescriptor_t output() const { return output_.get(); }
  cudnnFilterDescriptor_t filter() const { return filter_.get(); }
  cudnnConvolutionDescriptor_t geometry() const { return geometry_.get(); }

 private:
  template <typename Descriptor>
  using Owned = std::unique_ptr<std::remove_pointer_t<Descriptor>, cudnnStatus_t (*)(Descriptor)>;

  explicit ConvDescriptors(const Cudnn& dnn)
      : input_(nullptr, dnn.DestroyTensorDescriptor),
        output_(nullptr, dnn.DestroyTensorDescriptor),
        filter_(nullptr, dnn.DestroyFilterDescriptor),
        geometry_(nullptr, dnn.DestroyConvolutionDescriptor) {}

  Owned<cudnnTensorDescriptor_t> input_;
  Owned<cudnnTensorDescriptor_t> output_;
  Owned<cudnnFilterDescriptor_t> filter_;
  Owned<cudnnConvolutionDescriptor_t> geometry_;
};

}  // namespace slipstream::cuda

#endif  // SLIPSTREAM_WORKER_COMPUTE_CUDA_CONV_DESCRIPTORS_H_
