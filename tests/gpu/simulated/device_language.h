#ifndef SLIPSTREAM_TESTS_GPU_SIMULATED_DEVICE_LANGUAGE_H_
#define SLIPSTREAM_TESTS_GPU_SIMULATED_DEVICE_LANGUAGE_H_

// The parts of CUDA's language that kernels use, for the host's compiler. Included before each file
// of kernels.

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <atomic>
#include <type_traits>

#include "tests/gpu/simulated/kernel_threads.h"

#undef __global__
#undef __device__
#undef __shared__
#define __global__
#define __device__
// Blocks run one at a time, so a static variable will do.
#define __shared__ static thread_local

#define gridDim (slipstream::simulated::Here().grid)
#define blockDim (slipstream::simulated::Here().block)
#define blockIdx (slipstream::simulated::Here().block_index)
#define threadIdx (slipstream::simulated::Here().thread_index)

inline void __syncthreads() { slipstream::simulated::AwaitBlock(); }
inline void __threadfence_system() { std::atomic_thread_fence(std::memory_order_seq_cst); }

template <typename T>
T __shfl_xor_sync(unsigned /*mask*/, T value, unsigned distance) {
  return slipstream::simulated::ShuffleXor(value, distance);
}

namespace slipstream::cuda {

template <typename T>
bool IsReachable(const T& argument) {
  if constexpr (std::is_pointer_v<T>) return simulated::IsReachable(argument);
  return true;
}

/// Launches a kernel, like kernel<<<blocks, threads, 0, stream>>>(arguments...) with nvcc.
template <typename Kernel, typename... Arguments>
void LaunchKernel(cudaStream_t stream, dim3 blocks, dim3 threads, Kernel kernel,
                  Arguments... arguments) {
  const bool can_run = (IsReachable(arguments) && ...);
  simulated::EnqueueGrid(stream, blocks, threads, can_run, [=] { kernel(arguments...); });
}

}  // namespace slipstream::cuda

#endif  // SLIPSTREAM_TESTS_GPU_SIMULATED_DEVICE_LANGUAGE_H_
