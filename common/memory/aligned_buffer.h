#ifndef SLIPSTREAM_COMMON_MEMORY_ALIGNED_BUFFER_H_
#define SLIPSTREAM_COMMON_MEMORY_ALIGNED_BUFFER_H_

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <new>
#include <span>
#include <type_traits>

#include "common/memory/large_pages.h"

namespace slipstream {

/// A fixed number of values, zero at first, that begin on a cache line. So an AVX-512 vector at a
/// multiple of 16 floats never crosses a cache line, and sums do not depend on the memory's
/// address. Large buffers lie on large pages.
///
/// A failed allocation throws std::bad_alloc, as in any container; the plan turns it into a status.
template <typename T>
class AlignedBuffer {
  static_assert(std::is_trivial_v<T>);

 public:
  static constexpr std::align_val_t kAlignment{64};

  AlignedBuffer() = default;
  explicit AlignedBuffer(size_t size) : values_(Allocate(size), Free{size}), size_(size) {}

  T* data() { return values_.get(); }
  const T* data() const { return values_.get(); }
  size_t size() const { return size_; }

  std::span<T> span() { return {values_.get(), size_}; }
  std::span<const T> span() const { return {values_.get(), size_}; }

 private:
  static bool IsMapped(size_t size) { return size * sizeof(T) >= kLargePagesBytesMin; }

  static T* Allocate(size_t size) {
    if (!IsMapped(size)) {
      auto* const values = static_cast<T*>(::operator new(size * sizeof(T), kAlignment));
      std::fill_n(values, size, T{});
      return values;
    }
    const size_t bytes = MappedSize(size * sizeof(T));
    void* const pages = MapAligned(bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    if (pages == nullptr) throw std::bad_alloc();
    PreferLargePages(pages, bytes);
    return static_cast<T*>(pages);
  }

  struct Free {
    void operator()(T* values) const {
      if (IsMapped(size)) {
        munmap(values, MappedSize(size * sizeof(T)));
      } else {
        ::operator delete(values, kAlignment);
      }
    }

    size_t size = 0;
  };

  std::unique_ptr<T, Free> values_;
  size_t size_ = 0;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_MEMORY_ALIGNED_BUFFER_H_
