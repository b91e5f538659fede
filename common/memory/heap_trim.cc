#include "common/memory/heap_trim.h"

#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

namespace slipstream {
namespace {

#ifdef __GLIBC__
/// Returns the bytes of the heap that are in memory. 0 if the system does not tell.
size_t ResidentHeapBytes() {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  std::ifstream areas("/proc/self/maps");
  std::vector<unsigned char> is_resident;
  size_t pages = 0;
  for (std::string area; std::getline(areas, area);) {
    void* begin = nullptr;
    void* end = nullptr;
    if (!area.ends_with("[heap]")) continue;
    if (std::sscanf(area.c_str(), "%p-%p", &begin, &end) != 2) continue;
    const auto bytes = static_cast<size_t>(static_cast<char*>(end) - static_cast<char*>(begin));
    is_resident.resize(bytes / page);
    if (mincore(begin, bytes, is_resident.data()) != 0) continue;
    pages += static_cast<size_t>(
        std::ranges::count_if(is_resident, [](unsigned char flags) { return flags % 2 == 1; }));
  }
  return pages * page;
}
#endif

}  // namespace

size_t HeapTrim::Look() {
#ifdef __GLIBC__
  const struct mallinfo2 heap = mallinfo2();
  used_[next_] = heap.uordblks;
  next_ = (next_ + 1) % kLooks;
  if (++looks_ < (has_trimmed_ ? kPause : kLooks)) return 0;
  const size_t lately = *std::ranges::max_element(used_);
  const size_t resident = ResidentHeapBytes();
  if (resident < lately + std::max(kIdleBytesMin, lately / 2)) return 0;
  malloc_trim(lately - heap.uordblks);
  looks_ = 0;
  has_trimmed_ = true;
  return resident - std::min(resident, ResidentHeapBytes());
#else
  return 0;
#endif
}

}  // namespace slipstream
