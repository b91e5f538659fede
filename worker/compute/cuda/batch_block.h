#ifndef SLIPSTREAM_WORKER_COMPUTE_CUDA_BATCH_BLOCK_H_
#define SLIPSTREAM_WORKER_COMPUTE_CUDA_BATCH_BLOCK_H_

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "worker/compute/batch_check.h"
#include "worker/compute/cuda/batch_part.h"
#include "worker/compute/plan.h"

namespace slipstream::cuda {

/// How a batch lies in one block of memory, on the host and on a device: what the pass is told,
/// which rows of kept examples it is of, labels or targets, examples. Offsets are in bytes, and the
/// same for batches of any size.
struct BatchBlock {
  size_t rows = 0;
  size_t answers = 0;
  size_t examples = 0;
  size_t end = 0;  // With as many examples as there may be.
  size_t answer_bytes = 0;
  size_t example_bytes = 0;  // Both of one example.

  static BatchBlock For(const NetSizes& net, uint32_t batch_size_max);

  /// Up to the last of `count` examples.
  size_t BytesOf(uint32_t count) const { return examples + count * example_bytes; }

  /// The places of `count` examples in the block at `block`, for the host to fill.
  BatchSpace SpaceAt(std::byte* block, uint32_t count, const NetSizes& net) const;

  friend bool operator==(const BatchBlock&, const BatchBlock&) = default;
};

/// A block and where it lies.
struct PlacedBlock {
  const BatchBlock& block;
  std::byte* memory = nullptr;
};

/// Enqueues that the values of a part of the batch in one block come to the beginning of another.
absl::Status CopyPart(const BatchPart& part, const PlacedBlock& from, const PlacedBlock& to,
                      cudaMemcpyKind kind, cudaStream_t stream);

}  // namespace slipstream::cuda

#endif  // SLIPSTREAM_WORKER_COMPUTE_CUDA_BATCH_BLOCK_H_
