#ifndef SLIPSTREAM_COMMON_KERNELS_HALF_DECODE_H_
#define SLIPSTREAM_COMMON_KERNELS_HALF_DECODE_H_

#include <span>

#include "common/kernels/segments.h"

namespace slipstream {

/// Converts received 16-bit values, which are little-endian and cut anywhere, even inside a value,
/// to fp32. The conversion is exact, see half_values.h.
/// REQUIRES: the segments hold exactly out.size() values, and none of out's bytes.
void DecodeBf16(const Segments& segments, std::span<float> out);
void DecodeFp16(const Segments& segments, std::span<float> out);

/// Does the same without the processor's own instruction, which DecodeFp16 uses if there is one.
void DecodeFp16Plain(const Segments& segments, std::span<float> out);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_KERNELS_HALF_DECODE_H_
