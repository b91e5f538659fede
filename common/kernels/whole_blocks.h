#ifndef SLIPSTREAM_COMMON_KERNELS_WHOLE_BLOCKS_H_
#define SLIPSTREAM_COMMON_KERNELS_WHOLE_BLOCKS_H_

#include <algorithm>
#include <cstddef>
#include <span>

#include "common/base/encoding.h"
#include "common/kernels/segments.h"

namespace slipstream {

/// Calls decode(first byte of a block, the places of its values in `out`) for each block of a
/// payload that is cut anywhere; a block that is cut is put together first. REQUIRES: the segments
/// hold exactly the blocks of out.size() values.
template <Encoding kEncoding, typename Decode>
void ForEachWholeBlock(const Segments& bytes, std::span<float> out, Decode decode) {
  constexpr size_t kValues = RowOf(kEncoding).block_values;
  std::byte room[EncodedBytes(kEncoding, kValues)];
  ForEachBlock(bytes, sizeof(room), [&](size_t, const Segments& block) {
    const std::byte* whole = block.front().data();
    if (block.size() > 1) {
      std::byte* end = room;
      for (const ByteSegment& segment : block) end = std::ranges::copy(segment, end).out;
      whole = room;
    }
    const size_t count = std::min(kValues, out.size());
    decode(whole, out.first(count));
    out = out.subspan(count);
  });
}

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_KERNELS_WHOLE_BLOCKS_H_
