#include "common/memory/large_pages.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>

// Headers older than Linux 6.1 do not define it.
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

namespace slipstream {

size_t MappedSize(size_t bytes) {
  if (bytes < kLargePagesBytesMin) return std::max<size_t>(1, bytes);
  return (bytes + kLargePage - 1) / kLargePage * kLargePage;
}

void* MapAligned(size_t size, int protection, int flags, int fd) {
  if (size < kLargePagesBytesMin) {
    void* const pages = mmap(nullptr, size, protection, flags, fd, 0);
    return pages == MAP_FAILED ? nullptr : pages;
  }
  // Reserve more addresses than needed, and give back those before and behind the aligned range.
  const size_t reserved = size + kLargePage;
  if (reserved < size) return nullptr;
  void* const room =
      mmap(nullptr, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) return nullptr;
  auto* const first = static_cast<std::byte*>(room);
  const size_t past = reinterpret_cast<uintptr_t>(first) % kLargePage;
  const size_t head = (kLargePage - past) % kLargePage;
  void* const pages = mmap(first + head, size, protection, flags | MAP_FIXED, fd, 0);
  if (pages == MAP_FAILED) {
    munmap(room, reserved);
    return nullptr;
  }
  if (head > 0) munmap(first, head);
  if (head < kLargePage) munmap(first + head + size, kLargePage - head);
  return pages;
}

void PreferLargePages(void* pages, size_t size) {
  if (size >= kLargePagesBytesMin) (void)madvise(pages, size, MADV_HUGEPAGE);
}

void MakeLargePages(void* pages, size_t size) {
  if (size < kLargePagesBytesMin) return;
  // The kernel gathers pages that are there into a large page, so each range must have one.
  auto* const bytes = static_cast<volatile char*>(pages);
  for (size_t at = 0; at < size; at += kLargePage) bytes[at] = 0;
  (void)madvise(pages, size, MADV_COLLAPSE);
}

}  // namespace slipstream
