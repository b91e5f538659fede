#ifndef SLIPSTREAM_TESTS_GPU_SIMULATED_KERNEL_THREADS_H_
#define SLIPSTREAM_TESTS_GPU_SIMULATED_KERNEL_THREADS_H_

#include <cuda_runtime.h>

#include <cstring>
#include <functional>
#include <type_traits>

namespace slipstream::simulated {

/// Calls `body` once for each thread of the grid, on the calling thread: block after block, and in
/// a block, thread after thread, until one waits for the others, from the first to the last or the
/// other way round, and in a drawn order after a barrier. Ends the process if it would wait for
/// ever, because some thread of its block or warp never comes to where it waits.
void RunGrid(dim3 blocks, dim3 threads, const std::function<void()>& body);

/// Enqueues that, if it can run at all; what keeps it from being done is the calling thread's last
/// error.
void EnqueueGrid(cudaStream_t stream, dim3 blocks, dim3 threads, bool can_run,
                 std::function<void()> body);

/// Whether a kernel may be given this address: the device's, pinned, or null.
bool IsReachable(const void* memory);

/// In a kernel: which thread it is.
struct Place {
  dim3 grid;
  dim3 block;
  dim3 block_index;
  dim3 thread_index;
};
const Place& Here();

/// Waits for all threads of the block that have not ended.
void AwaitBlock();

/// What the thread of the warp whose lane differs from the caller's by `distance`, bit by bit, has
/// given. Every thread of the warp has to call it.
void ExchangeInWarp(void* value, size_t bytes, unsigned distance);

template <typename T>
T ShuffleXor(T value, unsigned distance) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 8);
  ExchangeInWarp(&value, sizeof(value), distance);
  return value;
}

}  // namespace slipstream::simulated

#endif  // SLIPSTREAM_TESTS_GPU_SIMULATED_KERNEL_THREADS_H_
