#include "common/memory/heap_trim.h"

#include <malloc.h>

namespace slipstream {

size_t HeapTrim::Look() {
#ifdef __GLIBC__
  const struct mallinfo2 heap = mallinfo2();
  // A heap that has grown was full between two looks.
  peak_ = std::max({peak_, heap.uordblks, heap.arena > heap_ ? heap.arena : 0});
  heap_ = heap.arena;
  used_[next_] = heap.uordblks;
  next_ = (next_ + 1) % kLooks;
  if (++looks_ < kLooks) return 0;
  const size_t lately = *std::ranges::max_element(used_);
  if (peak_ < lately + kIdleBytesMin) return 0;
  const size_t idle = peak_ - lately;
  malloc_trim(0);
  peak_ = lately;
  return idle;
#else
  return 0;
#endif
}

}  // namespace slipstream
