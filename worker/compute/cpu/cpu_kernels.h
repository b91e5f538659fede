#ifndef SLIPSTREAM_WORKER_COMPUTE_CPU_CPU_KERNELS_H_
#define SLIPSTREAM_WORKER_COMPUTE_CPU_CPU_KERNELS_H_

namespace slipstream {

/// Which implementations a plan may choose from.
enum class CpuKernels {
  kFastest,  // Whatever suits the net and the processor.
  kOneDnn,   // oneDNN wherever it can, the plain kernels elsewhere.
  kPlain,    // The plain kernels only: the reference of the others.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_COMPUTE_CPU_CPU_KERNELS_H_
