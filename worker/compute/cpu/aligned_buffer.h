#ifndef SLIPSTREAM_WORKER_COMPUTE_CPU_ALIGNED_BUFFER_H_
#define SLIPSTREAM_WORKER_COMPUTE_CPU_ALIGNED_BUFFER_H_

#include <algorithm>
#include <cstddef>
#include <memory>
#include <new>
#include <span>
#include <type_traits>

namespace slipstream {

/// A fixed number of values, zero at first, that begin on a cache line: an AVX-512 vector at a
/// multiple of 16 floats never crosses one, and sums do not depend on where memory came from.
///
/// Allocation failure throws std::bad_alloc like any container's; the plan's edge turns it into a
/// status.
template <typename T>
class AlignedBuffer {
  static_assert(std::is_trivial_v<T>);

 public:
  static constexpr std::align_val_t kAlignment{64};

  AlignedBuffer() = default;
  explicit AlignedBuffer(size_t size)
      : values_(static_cast<T*>(::operator new(size * sizeof(T), kAlignment))), size_(size) {
    std::fill_n(values_.get(), size, T{});
  }

  T* data() { return values_.get(); }
  const T* data() const { return values_.get(); }
  size_t size() const { return size_; }

  std::span<T> span() { return {values_.get(), size_}; }
  std::span<const T> span() const { return {values_.get(), size_}; }

 private:
  struct Free {
    void operator()(T* values) const { ::operator delete(values, kAlignment); }
  };

  std::unique_ptr<T, Free> values_;
  size_t size_ = 0;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_COMPUTE_CPU_ALIGNED_BUFFER_H_
