#ifndef SLIPSTREAM_COMMON_MEMORY_HEAP_TRIM_H_
#define SLIPSTREAM_COMMON_MEMORY_HEAP_TRIM_H_

#include <algorithm>
#include <array>
#include <cstddef>

namespace slipstream {

/// Gives back to the system what malloc keeps of a peak that has passed, where it is set to keep
/// all that was freed (common/rpc/transfer_tuning.h). As much as was in use lately is kept at the
/// heap's end, but what is free within the heap goes, too, and costs its next user a fault for each
/// page: so this is done rarely, and only where much is gained.
///
/// Not thread-safe: one owner. Whoever allocates meanwhile may have to wait a while for a trim.
class HeapTrim {
 public:
  /// Idle memory is given back if it is more than this, and more than half of what was in use
  /// lately.
  static constexpr size_t kIdleBytesMin = size_t{8} << 20;

  /// A heap grows by so much more than is needed.
  static constexpr size_t kTopPad = size_t{64} << 20;

  /// Looks from one trim to the next, at least.
  static constexpr size_t kPause = 40;

  /// "Lately" is the time of the last so many looks.
  static constexpr size_t kLooks = 10;

  /// To be called about once a second. Returns the bytes that were given back, about; 0 usually.
  size_t Look();

 private:
  std::array<size_t, kLooks> used_{};
  size_t next_ = 0;
  size_t looks_ = 0;  // Since the last trim, or from the first on.
  bool has_trimmed_ = false;
  size_t heap_ = 0;  // Its size at the last look.
  size_t peak_ = 0;  // Of what was in use since the last trim.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_MEMORY_HEAP_TRIM_H_
