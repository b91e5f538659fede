#ifndef SLIPSTREAM_COMMON_KERNELS_COPY_VALUES_H_
#define SLIPSTREAM_COMMON_KERNELS_COPY_VALUES_H_

#include <bit>
#include <cstring>
#include <span>

#include "common/base/check.h"
#include "common/kernels/segments.h"
#include "common/kernels/streamed_stores.h"

namespace slipstream {

static_assert(std::endian::native == std::endian::little,
              "values travel as little-endian fp32 and are used as they arrive");

/// Copies the values of `segments`, wherever they are cut, to `out`. Streams past the caches only
/// if all values lie in one segment. REQUIRES: the segments hold exactly the bytes of `out`.
inline void CopyValues(const Segments& segments, std::span<float> out,
                       Stores stores = Stores::kCached) {
  PS_CHECK(TotalBytes(segments) == out.size_bytes());
  if (stores == Stores::kStreamed && segments.size() == 1) {
    StreamValues(segments[0].data(), out.data(), out.size());
    return FinishStreaming();
  }
  // Copies bytes, so that a value cut between two segments needs no case of its own.
  std::byte* target = std::as_writable_bytes(out).data();
  for (const ByteSegment& segment : segments) {
    if (segment.empty()) continue;
    std::memcpy(target, segment.data(), segment.size());
    target += segment.size();
  }
}

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_KERNELS_COPY_VALUES_H_
