#ifndef SLIPSTREAM_WORKER_COMPUTE_CUDA_GATHER_KERNELS_H_
#define SLIPSTREAM_WORKER_COMPUTE_CUDA_GATHER_KERNELS_H_

#include <cuda_runtime.h>

#include <cstdint>

#include "absl/status/status.h"

namespace slipstream::cuda {

/// Rows of so many words of 32 bits, whatever they mean, and where some of them are to lie one
/// after the other. Of device memory, as all pointers here.
struct GatheredTable {
  const uint32_t* table = nullptr;
  uint32_t* gathered = nullptr;
  uint32_t row_words = 1;
};

/// gathered[i] = table[rows[i]], for i below `count` > 0, of examples and of their answers; the
/// twin of ExampleGatherer. Enqueues on `stream` and returns; an error is the launch's own.
/// REQUIRES: both tables have all rows that are named.
absl::Status GatherRows(cudaStream_t stream, const uint32_t* rows, uint32_t count,
                        const GatheredTable& examples, const GatheredTable& answers);

}  // namespace slipstream::cuda

#endif  // SLIPSTREAM_WORKER_COMPUTE_CUDA_GATHER_KERNELS_H_
