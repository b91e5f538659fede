#ifndef SLIPSTREAM_WORKER_COMPUTE_CUDA_HOST_DEVICE_H_
#define SLIPSTREAM_WORKER_COMPUTE_CUDA_HOST_DEVICE_H_

/// Marks a function that kernels call. It is also compiled for the host, so that tests can compare
/// a kernel's results with those of the CPU's kernels on a machine without a GPU.
#ifdef __CUDACC__
#define PS_HOST_DEVICE __host__ __device__
#else
#define PS_HOST_DEVICE
#endif

#endif  // SLIPSTREAM_WORKER_COMPUTE_CUDA_HOST_DEVICE_H_
