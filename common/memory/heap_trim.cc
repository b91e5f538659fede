#include "common/memory/heap_trim.h"

#include <malloc.h>

#include <algorithm>

namespace slipstream {

size_t HeapTrim::Look() {
#ifdef __GLIBC__
  const struct mallinfo2 heap = mallinfo2();
  // A heap that has grown was full at some moment since the last look, even if much is free again
  // now.
  const size_t grown = heap.arena > heap_ ? heap.arena - std::min(heap.arena, kTopPad) : 0;
  peak_ = std::max({peak_, heap.uordblks, grown});
  heap_ = heap.arena;
  used_[next_] = heap.uordblks;
  next_ = (next_ + 1) % kLooks;
  if (++looks_ < (has_trimmed_ ? kPause : kLooks)) return 0;
  const size_t lately = *std::ranges::max_element(used_);
  if (peak_ < lately + std::max(kIdleBytesMin, lately / 2)) return 0;
  const size_t idle = peak_ - lately;
  malloc_trim(lately - heap.uordblks);
  peak_ = lately;
  looks_ = 0;
  has_trimmed_ = true;
  return idle;
#else
  return 0;
#endif
}

}  // namespace slipstream
