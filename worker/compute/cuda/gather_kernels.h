#ifndef SLIPSTREAM_WORKER_COMPUTE_CUDA_GATHER_KERNELS_H_
#define SLIPSTREAM_WORKER_COMPUTE_CUDA_GATHER_KERNELS_H_

#include <cuda_runtime.h>

#include <cstdint>

#include "absl/status/status.h"

namespace slipstream::cuda {

/// A table whose rows are `row_words` words of 32 bits of any meaning, and the array that receives
/// some of its rows one after another. Both are in device memory, as all pointers here.
struct GatheredTable {
  const uint32_t* table = nullptr;
  uint32_t* gathered = nullptr;
  uint32_t row_words = 1;
};

/// Computes gathered[i] = table[rows[i]], for i below `count` > 0, of examples and of their
/// answers; the twin of ExampleGatherer. Enqueues on `stream` and returns; an error is that of the
/// launch. REQUIRES: both tables have all rows that are named.
absl::Status GatherRows(cudaStream_t stream, const uint32_t* rows, uint32_t count,
                        const GatheredTable& examples, const GatheredTable& answers);

}  // namespace slipstream::cuda

#endif  // SLIPSTREAM_WORKER_COMPUTE_CUDA_GATHER_KERNELS_H_
