#ifndef SLIPSTREAM_COMMON_KERNELS_SEGMENTS_H_
#define SLIPSTREAM_COMMON_KERNELS_SEGMENTS_H_

#include <cstddef>
#include <span>
#include <vector>

namespace slipstream {

/// Bytes of a payload as they lie in received buffers: little-endian fp32 values cut anywhere, also
/// inside a value. Borrowed; whoever made the list keeps the buffers alive.
using ByteSegment = std::span<const std::byte>;
using Segments = std::vector<ByteSegment>;

inline size_t TotalBytes(const Segments& segments) {
  size_t bytes = 0;
  for (const ByteSegment& segment : segments) bytes += segment.size();
  return bytes;
}

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_KERNELS_SEGMENTS_H_
