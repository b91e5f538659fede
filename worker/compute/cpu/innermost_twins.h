#ifndef SLIPSTREAM_WORKER_COMPUTE_CPU_INNERMOST_TWINS_H_
#define SLIPSTREAM_WORKER_COMPUTE_CPU_INNERMOST_TWINS_H_

#include "worker/compute/cpu/innermost_kernels.h"

namespace slipstream {

/// The kernels for each instruction set. They must run only on processors that have it.
extern const InnermostKernels kInnermostAvx512;
extern const InnermostKernels kInnermostAvx2;

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_COMPUTE_CPU_INNERMOST_TWINS_H_
