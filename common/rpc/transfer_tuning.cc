#include "common/rpc/transfer_tuning.h"

#include <malloc.h>

#include "absl/synchronization/mutex.h"
#include "common/memory/heap_trim.h"

namespace slipstream {

void TuneForTransfers() {
#ifdef __GLIBC__
  // Refused settings only cost speed, so nobody needs to hear of them.
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, -1);
  mallopt(M_TOP_PAD, static_cast<int>(HeapTrim::kTopPad));
  // What one thread lets go of serves all others: a payload is read, folded and freed by different
  // threads, and with an arena of its own for each the process would keep every arena's peak.
  mallopt(M_ARENA_MAX, 1);
#endif
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
}

}  // namespace slipstream
