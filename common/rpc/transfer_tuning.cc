#include "common/rpc/transfer_tuning.h"

#include <malloc.h>

#include "absl/synchronization/mutex.h"
#include "common/memory/heap_trim.h"

namespace slipstream {

void TuneForTransfers() {
#ifdef __GLIBC__
  // A refused setting only costs speed, so results are ignored.
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, -1);
  mallopt(M_TOP_PAD, static_cast<int>(HeapTrim::kTopPad));
  // Memory that one thread frees is then reused by all others. A payload is read, folded and freed
  // by different threads: with an arena for each, the process would keep every arena's peak.
  mallopt(M_ARENA_MAX, 1);
#endif
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
}

}  // namespace slipstream
