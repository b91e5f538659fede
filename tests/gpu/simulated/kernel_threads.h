#ifndef SLIPSTREAM_TESTS_GPU_SIMULATED_KERNEL_THREADS_H_
#define SLIPSTREAM_TESTS_GPU_SIMULATED_KERNEL_THREADS_H_

#include <cuda_runtime.h>

#include <cstring>
#include <functional>
#include <type_traits>

namespace slipstream::simulated {

/// Calls `body` once for each thread of the grid, on the calling thread, block after block. The
/// threads of a block begin one after another, from the first to the last or in reverse. A thread
/// runs until it ends or waits at a barrier; after a barrier, threads go on in a random order. Ends
/// the process if it would wait for ever, because a thread of the same block or warp never comes to
/// the barrier.
void RunGrid(dim3 blocks, dim3 threads, const std::function<void()>& body);

/// Enqueues a RunGrid if `can_run`. If the grid cannot be enqueued, the reason becomes the calling
/// thread's last error.
void EnqueueGrid(cudaStream_t stream, dim3 blocks, dim3 threads, bool can_run,
                 std::function<void()> body);

/// Returns whether a kernel may be given this address: it is the device's, pinned, or null.
bool IsReachable(const void* memory);

/// The position of a thread within the grid.
struct Place {
  dim3 grid;
  dim3 block;
  dim3 block_index;
  dim3 thread_index;
};
const Place& Here();

/// Waits for all threads of the block that have not ended.
void AwaitBlock();

/// Exchanges values with the warp's thread whose lane number is the caller's XOR `distance`: the
/// other thread's value replaces the caller's. Every thread of the warp has to call it.
void ExchangeInWarp(void* value, size_t bytes, unsigned distance);

template <typename T>
T ShuffleXor(T value, unsigned distance) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 8);
  ExchangeInWarp(&value, sizeof(value), distance);
  return value;
}

}  // namespace slipstream::simulated

#endif  // SLIPSTREAM_TESTS_GPU_SIMULATED_KERNEL_THREADS_H_
