#ifndef SLIPSTREAM_COMMON_MEMORY_LARGE_PAGES_H_
#define SLIPSTREAM_COMMON_MEMORY_LARGE_PAGES_H_

#include <cstddef>

namespace slipstream {

/// Mappings that the kernel can back with large pages, which it takes to be worth asking for:
/// passes over arrays of many megabytes then spend no time on looking addresses up. Measured, an
/// update of 64 MiB takes four fifths of the time, and a first write a third.
///
/// Where there are no large pages, all of this works with the usual ones.

inline constexpr size_t kLargePage = size_t{2} << 20;

/// Below, rounding up would cost more than it gains.
inline constexpr size_t kLargePagesBytesMin = 4 * kLargePage;

/// `bytes`, or where large pages are worth it the next multiple of theirs; not 0.
size_t MappedSize(size_t bytes);

/// As mmap without an address, on a large page's boundary; null where that fails. `size` is a
/// MappedSize. Given back by munmap.
void* MapAligned(size_t size, int protection, int flags, int fd);

/// Asks for large pages behind a mapping of this process alone that was not written yet.
void PreferLargePages(void* pages, size_t size);

/// Puts large pages behind a mapping of a memfd that was not written yet, in place of the usual
/// ones that its first write would have brought. Takes about as long as that write.
void MakeLargePages(void* pages, size_t size);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_MEMORY_LARGE_PAGES_H_
