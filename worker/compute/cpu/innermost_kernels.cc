#include "worker/compute/cpu/innermost_kernels.h"

#include "worker/compute/cpu/innermost_twins.h"

namespace slipstream {

std::vector<const InnermostKernels*> AvailableInnermostKernels() {
  std::vector<const InnermostKernels*> available;
#ifdef __x86_64__
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f")) available.push_back(&kInnermostAvx512);
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    available.push_back(&kInnermostAvx2);
  }
#endif
  return available;
}

}  // namespace slipstream
