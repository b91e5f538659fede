#ifndef SLIPSTREAM_COMMON_MEMORY_BLOCK_LOCKS_H_
#define SLIPSTREAM_COMMON_MEMORY_BLOCK_LOCKS_H_

#include <algorithm>
#include <cstddef>
#include <vector>

#include "common/base/mutex.h"

namespace slipstream {

/// Locks for an array of values that several threads read and change at once, one for each block.
/// Values are touched only within ForEachBlock. So there is no data race, no change of a
/// value is lost, and the values of one block are those between two changes; two blocks may be of
/// different times. A lock is held for some microseconds, and threads that meet at the first block
/// walk through the array one block apart.
///
/// One atomic operation for each value takes 7 to 11 times as long (64 MiB, one and two threads).
///
/// Thread-safe.
class BlockLocks {
 public:
  /// 32 KiB of fp32, so a few arrays' blocks fit a core's second-level cache.
  static constexpr size_t kBlockValues = 8192;

  explicit BlockLocks(size_t values) : locks_((values + kBlockValues - 1) / kBlockValues) {}

  /// Calls function(begin, end) for the part of [begin, end) in each block, in their order, while
  /// it holds the block's lock. REQUIRES: function takes no other lock of these.
  template <typename Function>
  void ForEachBlock(size_t begin, size_t end, const Function& function) {
    while (begin < end) {
      const size_t block = begin / kBlockValues;
      const size_t part_end = std::min(end, (block + 1) * kBlockValues);
      const MutexLock lock(locks_[block]);
      function(begin, part_end);
      begin = part_end;
    }
  }

 private:
  std::vector<Mutex> locks_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_MEMORY_BLOCK_LOCKS_H_
