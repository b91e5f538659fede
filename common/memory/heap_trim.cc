#include "common/memory/heap_trim.h"

#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

namespace slipstream {
namespace {

#ifdef __GLIBC__
/// Returns the bytes in memory that belong to this process alone, and to no file. 0 if the system
/// does not tell.
size_t ResidentBytes() {
  std::ifstream pages("/proc/self/statm");
  size_t mapped = 0, resident = 0, of_files_or_shared = 0;
  pages >> mapped >> resident >> of_files_or_shared;
  return (resident - std::min(resident, of_files_or_shared)) *
         static_cast<size_t>(sysconf(_SC_PAGESIZE));
}
#endif

}  // namespace

size_t HeapTrim::Look() {
#ifdef __GLIBC__
  const struct mallinfo2 heap = mallinfo2();
  const size_t used = heap.uordblks + heap.hblkhd;
  used_[next_] = used;
  next_ = (next_ + 1) % kLooks;
  if (++looks_ < (has_trimmed_ ? kPause : kLooks)) return 0;
  const size_t lately = *std::ranges::max_element(used_);
  const size_t resident = ResidentBytes();
  if (resident < lately + overhead_ + std::max(kIdleBytesMin, lately / 2)) return 0;
  malloc_trim(lately - used);
  const size_t left = ResidentBytes();
  overhead_ = left - std::min(left, used);
  looks_ = 0;
  has_trimmed_ = true;
  return resident - std::min(resident, left);
#else
  return 0;
#endif
}

}  // namespace slipstream
