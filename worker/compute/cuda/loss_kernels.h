#ifndef SLIPSTREAM_WORKER_COMPUTE_CUDA_LOSS_KERNELS_H_
#define SLIPSTREAM_WORKER_COMPUTE_CUDA_LOSS_KERNELS_H_

#include <cuda_runtime.h>

#include <cstdint>

#include "absl/status/status.h"
#include "worker/compute/cuda/loss_math.h"
#include "worker/compute/cuda/pass_block.h"

namespace slipstream::cuda {

/// Losses and their gradients; twins of cpu/losses.h. First each example's
/// loss is computed, then their sum, in a fixed order that differs from the CPU's.
///
/// Pointers are to device memory, except `totals`. Each call enqueues on `stream` and returns.

/// The shape of the outputs, [count, outputs]. Gradients are of the mean over the mini-batch of
/// `of` examples, to which these examples belong.
struct LossShape {
  uint32_t count = 0;
  uint32_t outputs = 0;
  uint32_t of = 0;
};

/// Computes the losses of logits. `gradient` may be null.
absl::Status SoftmaxCrossEntropy(cudaStream_t stream, const LossShape& shape, const float* logits,
                                 const uint32_t* labels, RowLoss* losses, float* gradient);

/// Computes sums of squares as losses, and the gradient of their mean over all values. `gradient`
/// may be null.
absl::Status MeanSquaredError(cudaStream_t stream, const LossShape& shape, const float* values,
                              const float* targets, RowLoss* losses, float* gradient);

/// Sums the losses. `totals` is in pinned memory.
absl::Status SumLosses(cudaStream_t stream, uint32_t count, const RowLoss* losses,
                       PassOutputs* totals);

}  // namespace slipstream::cuda

#endif  // SLIPSTREAM_WORKER_COMPUTE_CUDA_LOSS_KERNELS_H_
