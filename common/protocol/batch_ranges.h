#ifndef SLIPSTREAM_COMMON_PROTOCOL_BATCH_RANGES_H_
#define SLIPSTREAM_COMMON_PROTOCOL_BATCH_RANGES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace slipstream {

/// Mini-batches [first, first + count) of the run-long sequence.
struct BatchRange {
  uint64_t first = 0;
  uint64_t count = 1;

  friend bool operator==(const BatchRange&, const BatchRange&) = default;

  template <typename Archive, typename Self>
  static void Parts(Archive& archive, Self& self) {
    archive(self.first, self.count);
  }
};

/// The mini-batches that one push stands for, in the order in which they were computed. There are
/// several ranges if units of work, or batches that others gave back, do not follow one another.
using BatchRanges = std::vector<BatchRange>;

/// The number of ranges of one push, at most.
inline constexpr size_t kBatchRangesMax = 64;

/// Returns how many mini-batches the ranges hold.
inline uint64_t CountOf(const BatchRanges& ranges) {
  uint64_t count = 0;
  for (const BatchRange& range : ranges) count += range.count;
  return count;
}

/// Returns how many examples a push of these mini-batches can stand for, where a push has `quantum`
/// mini-batches at most. A client that names none computes one for each push.
inline uint64_t ExamplesMax(const BatchRanges& batches, uint64_t quantum, uint32_t batch_size) {
  return std::clamp<uint64_t>(CountOf(batches), 1, quantum) * batch_size;
}

/// Returns the mini-batch that `before` others of the ranges come before. REQUIRES: before <
/// CountOf(ranges).
inline uint64_t BatchAt(const BatchRanges& ranges, uint64_t before) {
  size_t range = 0;
  for (; before >= ranges[range].count; ++range) before -= ranges[range].count;
  return ranges[range].first + before;
}

/// Returns one more than the last mini-batch, or 0 if there are no ranges.
inline uint64_t EndOf(const BatchRanges& ranges) {
  return ranges.empty() ? 0 : ranges.back().first + ranges.back().count;
}

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_PROTOCOL_BATCH_RANGES_H_
