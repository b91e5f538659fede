#ifndef SLIPSTREAM_WORKER_COMPUTE_CUDA_CUDA_DENSE_NODE_H_
#define SLIPSTREAM_WORKER_COMPUTE_CUDA_CUDA_DENSE_NODE_H_

#include <cuda_bf16.h>

#include <cstddef>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "common/base/precision.h"
#include "worker/compute/activation.h"
#include "worker/compute/cuda/cuda_node.h"
#include "worker/compute/cuda/device_context.h"
#include "worker/compute/cuda/device_memory.h"
#include "worker/compute/cuda/device_parameters.h"
#include "worker/compute/cuda/matmul.h"
#include "worker/compute/layer_shapes.h"

namespace slipstream::cuda {

/// A dense layer and the activation that follows it, as three matrix products of cuBLAS. With bf16
/// the operands are rounded first; the weights, the gradients and all sums stay fp32.
class CudaDenseNode final : public CudaNode {
 public:
  struct Options {
    DenseShape shape;
    DeviceParameters parameters;
    Activation activation = Activation::kNone;
    Precision precision = Precision::kFp32;
    uint32_t batch_size_max = 1;
    bool trains = true;
    bool wants_input_gradient = true;
  };

  /// `context` must outlive the node. RESOURCE_EXHAUSTED if memory for rounded operands is short.
  static absl::StatusOr<std::unique_ptr<CudaNode>> New(const DeviceContext& context,
                                                       const Options& options);

  size_t workspace_bytes() const override { return Matmul::kWorkspaceBytes; }
  absl::Status Prepare(uint32_t count) override;
  absl::Status Forward(const CudaPass& pass, const float* input, float* output) override;
  absl::Status Backward(const CudaPass& pass, const float* input, const float* output,
                        float* output_gradient, float* input_gradient) override;

 private:
  CudaDenseNode(const DeviceContext& context, const Options& options)
      : context_(context), options_(options) {}

  absl::Status AllocateRounded();
  absl::Status PrepareForward(const Matmul::Shape& shape);

  /// Returns the operand that a product reads: `values` themselves, or `rounded`, to which they are
  /// rounded first.
  absl::StatusOr<const void*> Operand(const float* values, size_t size,
                                      const DeviceArray<__nv_bfloat16>& rounded) const;

  const DeviceContext& context_;
  const Options options_;

  std::optional<Matmul> forward_;
  Matmul::Epilogue epilogue_ = Matmul::Epilogue::kNone;  // The epilogue of forward_.
  std::optional<Matmul> weight_gradient_;
  std::optional<Matmul> input_gradient_;

  // Valid within one pass, from Forward to Backward; empty unless operands are bf16.
  DeviceArray<__nv_bfloat16> rounded_input_;
  DeviceArray<__nv_bfloat16> rounded_weight_;
  DeviceArray<__nv_bfloat16> rounded_gradient_;
};

}  // namespace slipstream::cuda

#endif  // SLIPSTREAM_WORKER_COMPUTE_CUDA_CUDA_DENSE_NODE_H_
