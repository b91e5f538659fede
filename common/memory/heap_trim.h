#ifndef SLIPSTREAM_COMMON_MEMORY_HEAP_TRIM_H_
#define SLIPSTREAM_COMMON_MEMORY_HEAP_TRIM_H_

#include <array>
#include <cstddef>

namespace slipstream {

/// Gives memory back to the system that malloc keeps after a peak, in programs that make malloc
/// keep everything that was freed (common/rpc/library_settings.h). A trim leaves as much at the
/// heap's end as was in use lately. Free memory within the heap is given back, too, and costs its
/// next user a fault for each page: so trims are rare, and happen only where they gain much.
///
/// Not thread-safe: one owner. A thread that allocates during a trim may have to wait a while.
class HeapTrim {
 public:
  /// The heap's memory is given back if more of it is resident than was in use lately: by more than
  /// this, in bytes, and by more than half.
  static constexpr size_t kIdleBytesMin = size_t{8} << 20;

  /// How many bytes more than needed a heap grows by.
  static constexpr size_t kTopPad = size_t{64} << 20;

  /// The number of looks from one trim to the next, at least.
  static constexpr size_t kPause = 40;

  /// The number of looks that "lately" covers.
  static constexpr size_t kLooks = 10;

  /// Looks at the heap, and trims it if that gains enough. Call it about once a second. Returns
  /// roughly how many bytes were given back; usually 0.
  size_t Look();

 private:
  std::array<size_t, kLooks> used_{};
  size_t next_ = 0;
  size_t looks_ = 0;  // Since the last trim, or since the first look.
  bool has_trimmed_ = false;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_MEMORY_HEAP_TRIM_H_
