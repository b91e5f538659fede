#ifndef SLIPSTREAM_WORKER_COMPUTE_CUDA_VECTOR_KERNELS_H_
#define SLIPSTREAM_WORKER_COMPUTE_CUDA_VECTOR_KERNELS_H_

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "worker/compute/activation.h"
#include "worker/compute/cuda/pass_block.h"
#include "worker/compute/dropout_draws.h"

namespace slipstream::cuda {

/// Element-wise kernels and sums of columns and channels; twins of plain_vector.h and dropout.h.
/// Pointers are to device memory; each call enqueues on `stream` and returns. An error is that of
/// the launch.
///
/// Results do not depend on the device, because every sum has a fixed order.

/// Computes values[r][c][p] = activation(values[r][c][p] + bias[c]) for [rows, channels, plane].
absl::Status AddBias(cudaStream_t stream, Activation activation, size_t rows, uint32_t channels,
                     uint32_t plane, const float* bias, float* values);

/// Applies the activation. `input` and `output` may be the same.
absl::Status Activate(cudaStream_t stream, Activation activation, size_t size, const float* input,
                      float* output);

/// Computes the input's gradient. `output` is the activation's result; `output_gradient` and
/// `input_gradient` may be the same.
absl::Status ActivationInputGradient(cudaStream_t stream, Activation activation, size_t size,
                                     const float* output, const float* output_gradient,
                                     float* input_gradient);

/// Applies dropout to the elements [begin, begin + size) of mini-batch inputs->batch_index. `input`
/// and `output` hold only these, and may be the same.
absl::Status Dropout(cudaStream_t stream, const DropoutDraws& draws, const PassInputs* inputs,
                     size_t begin, size_t size, const float* input, float* output);

/// Computes sums[c] = Σ values[r][c] for [rows, columns].
absl::Status ColumnSums(cudaStream_t stream, size_t rows, uint32_t columns, const float* values,
                        float* sums);

/// The blocks that sum channels, unless there are more channels.
constexpr size_t kChannelSumsBlocks = 1024;

/// Computes sums[c] = Σ values[r][c][p] for [rows, channels, plane]. `partial` has room for
/// max(channels, kChannelSumsBlocks) values, which the call overwrites.
absl::Status ChannelSums(cudaStream_t stream, size_t rows, uint32_t channels, uint32_t plane,
                         const float* values, float* partial, float* sums);

/// Rounds values to bf16, to nearest, ties to even.
absl::Status ToBf16(cudaStream_t stream, size_t size, const float* values, __nv_bfloat16* rounded);

/// Sets *flag = inputs->pass after all work enqueued before; `flag` is in pinned memory.
absl::Status Raise(cudaStream_t stream, const PassInputs* inputs, uint32_t* flag);

}  // namespace slipstream::cuda

#endif  // SLIPSTREAM_WORKER_COMPUTE_CUDA_VECTOR_KERNELS_H_
