#ifndef SLIPSTREAM_WORKER_COMPUTE_CUDA_HOST_DEVICE_H_
#define SLIPSTREAM_WORKER_COMPUTE_CUDA_HOST_DEVICE_H_

/// Marks a function that kernels call. It is compiled for the host as well, so that tests can hold
/// what a kernel computes against the CPU's kernels on a machine without a GPU.
#ifdef __CUDACC__
#define PS_HOST_DEVICE __host__ __device__
#else
#define PS_HOST_DEVICE
#endif

#endif  // SLIPSTREAM_WORKER_COMPUTE_CUDA_HOST_DEVICE_H_
