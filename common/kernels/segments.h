#ifndef SLIPSTREAM_COMMON_KERNELS_SEGMENTS_H_
#define SLIPSTREAM_COMMON_KERNELS_SEGMENTS_H_

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace slipstream {

/// Bytes of a payload as they lie in received buffers. They are little-endian values, fp32 unless
/// something else is said, and cut anywhere, even inside a value. They are borrowed: the maker of
/// the list keeps the buffers alive.
using ByteSegment = std::span<const std::byte>;
using Segments = std::vector<ByteSegment>;

inline size_t TotalBytes(const Segments& segments) {
  size_t bytes = 0;
  for (const ByteSegment& segment : segments) bytes += segment.size();
  return bytes;
}

/// Hands out a payload in parts, one after another.
class SegmentParts {
 public:
  /// `segments` must outlive the parts.
  explicit SegmentParts(const Segments& segments) : segments_(segments) {}

  /// Returns the next `bytes` bytes. REQUIRES: so many are left.
  Segments Next(size_t bytes) {
    Segments part;
    while (bytes > 0) {
      const ByteSegment rest = segments_[segment_].subspan(taken_);
      const size_t count = std::min(bytes, rest.size());
      if (count > 0) part.push_back(rest.first(count));
      bytes -= count;
      taken_ += count;
      if (taken_ < segments_[segment_].size()) continue;
      ++segment_;
      taken_ = 0;
    }
    return part;
  }

 private:
  const Segments& segments_;
  size_t segment_ = 0;  // The segment that the next part begins in,
  size_t taken_ = 0;    // and the bytes of it that were handed out.
};

/// Calls pass(position of the block's first byte, block) for blocks of `block_bytes`; the last may
/// be shorter. It serves to make several passes over a payload that is larger than the cache.
template <typename Pass>
void ForEachBlock(const Segments& segments, size_t block_bytes, Pass pass) {
  Segments block;
  size_t begin = 0;
  size_t filled = 0;
  const auto end_block = [&] {
    pass(begin, std::as_const(block));
    block.clear();
    begin += filled;
    filled = 0;
  };
  for (ByteSegment rest : segments) {
    while (!rest.empty()) {
      const size_t taken = std::min(block_bytes - filled, rest.size());
      block.push_back(rest.first(taken));
      rest = rest.subspan(taken);
      filled += taken;
      if (filled == block_bytes) end_block();
    }
  }
  if (filled > 0) end_block();
}

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_KERNELS_SEGMENTS_H_
