#ifndef SLIPSTREAM_WORKER_COMPUTE_CPU_CPU_DEVICE_H_
#define SLIPSTREAM_WORKER_COMPUTE_CPU_CPU_DEVICE_H_

#include <memory>

#include "worker/compute/cpu/cpu_kernels.h"
#include "worker/compute/plan.h"

namespace slipstream {

/// The processor this program runs on. Its plans work inside StartStep on the calling thread and
/// their host arenas are the arenas themselves.
///
/// Equal inputs give equal bits, whatever a plan computed before, whatever its batch_size_max, and
/// for any number of threads: a plan uses one. Processors with different vector instructions
/// round differently.
///
/// With Precision::kBf16, convolutions and dense layers on oneDNN's kernels have operands of bf16;
/// the convolutions of few channels stay fp32, which is faster for them.
///
/// Thread-safe: holds no state.
std::unique_ptr<Device> NewCpuDevice(CpuKernels kernels = CpuKernels::kFastest);

/// oneDNN could imitate bf16 on any AVX-512, slower than it computes fp32.
bool CpuComputesBf16();

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_COMPUTE_CPU_CPU_DEVICE_H_
