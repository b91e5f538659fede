#ifndef SLIPSTREAM_COMMON_KERNELS_INT8_BLOCKS_H_
#define SLIPSTREAM_COMMON_KERNELS_INT8_BLOCKS_H_

#include <cstddef>
#include <span>

#include "common/kernels/segments.h"

namespace slipstream {

/// Encodes fp32 values in blocks of 1,024; the last block may be shorter. A block is its scale s,
/// which is the largest magnitude divided by 127, as a little-endian fp32, and then a signed byte q
/// for each value, which stands for q s. Values are rounded to nearest, ties to even, equal to the
/// bit on every instruction set. A block of numbers below 10⁻³⁰ becomes all 0, and a block with a
/// value that is not finite decodes to no finite value.
/// REQUIRES: `bytes` has room for exactly these values, see EncodedBytes.
void EncodeInt8(std::span<const float> values, std::span<std::byte> bytes);

/// Decodes received blocks, cut anywhere, to fp32. A block whose scale is not finite has no finite
/// value.
/// REQUIRES: the segments hold exactly the blocks of out.size() values.
void DecodeInt8(const Segments& bytes, std::span<float> out);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_KERNELS_INT8_BLOCKS_H_
