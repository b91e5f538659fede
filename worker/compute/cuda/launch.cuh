#ifndef SLIPSTREAM_WORKER_COMPUTE_CUDA_LAUNCH_CUH_
#define SLIPSTREAM_WORKER_COMPUTE_CUDA_LAUNCH_CUH_

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "worker/compute/cuda/divisor.h"
#include "worker/compute/cuda/launch_status.h"

namespace slipstream::cuda {

constexpr unsigned kThreads = 256;  // Threads of a block.
constexpr unsigned kWarp = 32;

// A grid has at most this many blocks. More than a GPU runs at once gain nothing, because threads
// loop over further work.
constexpr size_t kBlocksMax = 4096;

/// Returns the number of blocks for `work` threads; at least one, because an empty grid is an
/// error.
inline unsigned BlocksFor(size_t work, unsigned threads = kThreads) {
  return static_cast<unsigned>(std::clamp<size_t>((work + threads - 1) / threads, 1, kBlocksMax));
}

/// True if all positions below `size` can be divided by the fast method.
inline bool IsNarrow(size_t size) { return size <= Divisor::kNarrowEnd; }

/// Enqueues kernel(arguments...) for the given blocks and threads; `name` is for errors.
template <typename... Parameters, typename... Arguments>
absl::Status Launch(std::string_view name, cudaStream_t stream, dim3 blocks, dim3 threads,
                    void (*kernel)(Parameters...), Arguments... arguments) {
#ifdef __CUDACC__
  kernel<<<blocks, threads, 0, stream>>>(arguments...);
#else
  // A build without nvcc defines how kernels run; see tests/gpu/simulated.
  LaunchKernel(stream, blocks, threads, kernel, arguments...);
#endif
  return LaunchStatus(name);
}

/// Calls work(i) for this thread's share of [0, size).
template <typename Work>
__device__ void ForEach(size_t size, Work work) {
  const size_t step = size_t{gridDim.x} * blockDim.x;
  for (size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < size; i += step) work(i);
}

/// Returns, to each thread, the sum of the values of all threads of the block, which has kThreads.
/// The order of additions is fixed.
template <typename T>
__device__ T BlockSum(T value) {
  __shared__ T sums[kThreads];
  sums[threadIdx.x] = value;
  __syncthreads();
  for (unsigned distance = kThreads / 2; distance > 0; distance /= 2) {
    if (threadIdx.x < distance) sums[threadIdx.x] += sums[threadIdx.x + distance];
    __syncthreads();
  }
  const T sum = sums[0];
  __syncthreads();  // The next call writes the same array.
  return sum;
}

}  // namespace slipstream::cuda

#endif  // SLIPSTREAM_WORKER_COMPUTE_CUDA_LAUNCH_CUH_
