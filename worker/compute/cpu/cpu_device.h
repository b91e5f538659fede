#ifndef SLIPSTREAM_WORKER_COMPUTE_CPU_CPU_DEVICE_H_
#define SLIPSTREAM_WORKER_COMPUTE_CPU_CPU_DEVICE_H_

#include <memory>

#include "worker/compute/cpu/cpu_kernels.h"
#include "worker/compute/plan.h"

namespace slipstream {

/// Returns the processor that this program runs on. Its plans do the work inside StartStep on the
/// calling thread, and their host arenas are the arenas themselves.
///
/// Equal inputs give equal bits, whatever a plan computed before, whatever its batch_size_max, and
/// for any number of threads, because a plan uses one. Processors with different vector
/// instructions round differently.
///
/// Precision::kBf16 applies to convolutions and dense layers on oneDNN's kernels; convolutions with
/// few channels stay fp32, which is faster for them.
///
/// Thread-safe: holds no state.
std::unique_ptr<Device> NewCpuDevice(CpuKernels kernels = CpuKernels::kFastest);

/// True if this processor computes bf16 itself. (oneDNN could emulate it on any AVX-512, but slower
/// than it computes fp32.)
bool CpuComputesBf16();

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_COMPUTE_CPU_CPU_DEVICE_H_
