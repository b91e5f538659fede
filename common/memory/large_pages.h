#ifndef SLIPSTREAM_COMMON_MEMORY_LARGE_PAGES_H_
#define SLIPSTREAM_COMMON_MEMORY_LARGE_PAGES_H_

#include <cstddef>

namespace slipstream {

/// Mappings that the kernel can back with large pages, if it is asked to. Passes over arrays of
/// many megabytes then spend no time on looking addresses up. Measured: an update of 64 MiB takes
/// four fifths of the time, and a first write a third.
///
/// Where there are no large pages, all of this works with ordinary ones.

inline constexpr size_t kLargePage = size_t{2} << 20;

/// The smallest mapping that gets large pages: below it, rounding up would cost more than it gains.
inline constexpr size_t kLargePagesBytesMin = 4 * kLargePage;

/// Returns the size of a mapping for `bytes`: from kLargePagesBytesMin on a multiple of a large
/// page, otherwise `bytes` itself, but never 0.
size_t MappedSize(size_t bytes);

/// Maps like mmap without an address; a mapping that gets large pages begins on the boundary of
/// one. Returns null on failure. `size` is a MappedSize. Call munmap to release it.
void* MapAligned(size_t size, int protection, int flags, int fd);

/// Asks for large pages behind a private mapping that was not written yet.
void PreferLargePages(void* pages, size_t size);

/// Puts large pages behind a mapping of a memfd that was not written yet, instead of the ordinary
/// ones that its first write would bring. Takes about as long as that write.
void MakeLargePages(void* pages, size_t size);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_MEMORY_LARGE_PAGES_H_
