#ifndef SLIPSTREAM_WORKER_COMPUTE_CUDA_CUDA_PLAIN_NODES_H_
#define SLIPSTREAM_WORKER_COMPUTE_CUDA_CUDA_PLAIN_NODES_H_

#include <cstddef>

#include "worker/compute/activation.h"
#include "worker/compute/cuda/cuda_node.h"
#include "worker/compute/cuda/device_context.h"
#include "worker/compute/dropout_draws.h"
#include "worker/compute/layer_shapes.h"

namespace slipstream::cuda {

/// Layers without parameters, on own kernels. They keep nothing between calls; the context must
/// outlive them. `elements` are those of one example.

class CudaPoolNode final : public CudaNode {
 public:
  CudaPoolNode(const DeviceContext& context, const PoolShape& shape)
      : context_(context), shape_(shape) {}

  absl::Status Forward(const CudaPass& pass, const float* input, float* output) override;
  absl::Status Backward(const CudaPass& pass, const float* input, const float* output,
                        float* output_gradient, float* input_gradient) override;

 private:
  const DeviceContext& context_;
  const PoolShape shape_;
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
