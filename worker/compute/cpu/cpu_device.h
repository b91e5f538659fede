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
/// Thread-safe: holds no state.
std::unique_ptr<Device> NewCpuDevice(CpuKernels kernels = CpuKernels::kFastest);

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_COMPUTE_CPU_CPU_DEVICE_H_
