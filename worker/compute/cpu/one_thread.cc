#include "worker/compute/cpu/one_thread.h"

// These are declared here instead of included: <omp.h> comes with a compiler, and clang's is in
// another package. Both name the OpenMP runtime that oneDNN is linked with.
extern "C" {
int omp_get_max_threads(void);
void omp_set_num_threads(int threads);
}

namespace slipstream {

OneThreadScope::OneThreadScope() : threads_before_(omp_get_max_threads()) {
  // This sets the calling thread's number, not the process's.
  omp_set_num_threads(1);
}

OneThreadScope::~OneThreadScope() { omp_set_num_threads(threads_before_); }

}  // namespace slipstream
