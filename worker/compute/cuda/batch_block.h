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

/// The layout of a batch in one block of memory, on the host and on a device: the pass's inputs,
/// the rows of kept examples that it names, labels or targets, examples. Offsets are in bytes and
/// equal for batches of any size.
struct BatchBlock {
  size_t rows = 0;
  size_t answers = 0;
  size_t examples = 0;
  size_t end = 0;  // For the largest batch.
  size_t answer_bytes = 0;
  size_t example_bytes = 0;  // Both are for one example.

  static BatchBlock For(const NetSizes& net, uint32_t batch_size_max);

  /// The bytes up to the last of `count` examples.
  size_t BytesOf(uint32_t count) const { return examples + count * example_bytes; }

  /// Returns the space of `count` examples in the block at `block`, for the host to fill.
  BatchSpace SpaceAt(std::byte* block, uint32_t count, const NetSizes& net) const;

  friend bool operator==(const BatchBlock&, const BatchBlock&) = default;
};

/// A block's layout and its memory.
struct PlacedBlock {
  const BatchBlock& block;
  std::byte* memory = nullptr;
};

/// Enqueues a copy of the values of `part` of the batch in one block to the beginning of another.
absl::Status CopyPart(const BatchPart& part, const PlacedBlock& from, const PlacedBlock& to,
                      cudaMemcpyKind kind, cudaStream_t stream);

}  // namespace slipstream::cuda

#endif  // SLIPSTREAM_WORKER_COMPUTE_CUDA_BATCH_BLOCK_H_
