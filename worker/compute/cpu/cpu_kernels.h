#ifndef SLIPSTREAM_WORKER_COMPUTE_CPU_CPU_KERNELS_H_
#define SLIPSTREAM_WORKER_COMPUTE_CPU_CPU_KERNELS_H_

namespace slipstream {

/// The implementations that a plan may choose from.
enum class CpuKernels {
  kFastest,  // The fastest for the net and the processor.
  kOneDnn,   // oneDNN where it can be used, else the plain kernels.
  kPlain,    // Only the plain kernels, the reference for the others.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_COMPUTE_CPU_CPU_KERNELS_H_
