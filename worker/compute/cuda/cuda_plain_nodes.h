#ifndef SLIPSTREAM_WORKER_COMPUTE_CUDA_CUDA_PLAIN_NODES_H_
#define SLIPSTREAM_WORKER_COMPUTE_CUDA_CUDA_PLAIN_NODES_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "worker/compute/activation.h"
#include "worker/compute/cuda/cuda_node.h"
#include "worker/compute/cuda/device_context.h"
#include "worker/compute/cuda/device_memory.h"
#include "worker/compute/dropout_draws.h"
#include "worker/compute/layer_shapes.h"

namespace slipstream::cuda {

/// Layers without parameters, on our own kernels. The context must outlive them. `elements` is the
/// number of elements of one example.

class CudaPoolNode final : public CudaNode {
 public:
  /// Fails with RESOURCE_EXHAUSTED if memory for the positions of maxima, which training needs, is
  /// short.
  static absl::StatusOr<std::unique_ptr<CudaNode>> New(const DeviceContext& context,
                                                       const PoolShape& shape,
                                                       uint32_t batch_size_max, bool trains);

  absl::Status Forward(const CudaPass& pass, const float* input, float* output) override;
  absl::Status Backward(const CudaPass& pass, const float* input, const float* output,
                        float* output_gradient, float* input_gradient) override;

 private:
  CudaPoolNode(const DeviceContext& context, const PoolShape& shape)
      : context_(context), shape_(shape) {}

  const DeviceContext& context_;
  const PoolShape shape_;
  DeviceArray<uint32_t> places_;  // Valid within one pass, from Forward to Backward.
};

class CudaLrnNode final : public CudaNode {
 public:
  /// Fails with RESOURCE_EXHAUSTED if memory for the sums of windows, which training needs, is
  /// short.
  static absl::StatusOr<std::unique_ptr<CudaNode>> New(const DeviceContext& context,
                                                       const LrnShape& shape,
                                                       uint32_t batch_size_max, bool trains);

  absl::Status Forward(const CudaPass& pass, const float* input, float* output) override;
  absl::Status Backward(const CudaPass& pass, const float* input, const float* output,
                        float* output_gradient, float* input_gradient) override;

 private:
  CudaLrnNode(const DeviceContext& context, const LrnShape& shape)
      : context_(context), shape_(shape) {}

  const DeviceContext& context_;
  const LrnShape shape_;
  DeviceArray<float> scales_;  // Valid within one pass, from Forward to Backward.
};

class CudaActivationNode final : public CudaNode {
 public:
  CudaActivationNode(const DeviceContext& context, Activation activation, size_t elements)
      : context_(context), activation_(activation), elements_(elements) {}

  absl::Status Forward(const CudaPass& pass, const float* input, float* output) override;
  absl::Status Backward(const CudaPass& pass, const float* input, const float* output,
                        float* output_gradient, float* input_gradient) override;

 private:
  const DeviceContext& context_;
  const Activation activation_;
  const size_t elements_;
};

class CudaDropoutNode final : public CudaNode {
 public:
  CudaDropoutNode(const DeviceContext& context, const DropoutDraws& draws, size_t elements)
      : context_(context), draws_(draws), elements_(elements) {}

  absl::Status Forward(const CudaPass& pass, const float* input, float* output) override;
  absl::Status Backward(const CudaPass& pass, const float* input, const float* output,
                        float* output_gradient, float* input_gradient) override;

 private:
  const DeviceContext& context_;
  const DropoutDraws draws_;
  const size_t elements_;
};

}  // namespace slipstream::cuda

#endif  // SLIPSTREAM_WORKER_COMPUTE_CUDA_CUDA_PLAIN_NODES_H_
