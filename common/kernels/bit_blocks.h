#ifndef SLIPSTREAM_COMMON_KERNELS_BIT_BLOCKS_H_
#define SLIPSTREAM_COMMON_KERNELS_BIT_BLOCKS_H_

#include <cstddef>
#include <optional>
#include <span>

#include "common/base/encoding.h"
#include "common/kernels/segments.h"

namespace slipstream {

/// Encodings of one and of two bits a value, in blocks of 256; the last block may be shorter.
/// Both are meant for senders that feed their error back. Means are sums in a fixed order, so the
/// bits are equal on every instruction set. A block with a value that is not finite decodes to no
/// finite value.
///
/// A block begins with two levels, as little-endian fp32, and a byte: the number of positions in
/// the block's last byte that stand for no value. Only that of a message's last block is read. Then
/// follow the values' bits, from the lowest bit of each byte on.
///
/// - onebit (Seide et al., Interspeech 2014): 1 stands for the first level, the mean of the block's
///   values that are not negative, and 0 for the second, the mean of the others.
/// - twobit (the codes of MXNet's 2-bit compression; the levels are those that lose least): 1
/// stands
///   for the first level, the mean of the values that are at least t, 2 for the second, the mean of
///   those that are at most −t, and 0 for 0, where t is the mean magnitude of the block's values.
///   The code 3 decodes to no number.

/// Encodes values. REQUIRES: the encoding is onebit or twobit, and `bytes` has room for exactly
/// these values, see EncodedBytes.
void EncodeOneBit(std::span<const float> values, std::span<std::byte> bytes);
void EncodeTwoBit(std::span<const float> values, std::span<std::byte> bytes);

/// Decodes received blocks, cut anywhere, to fp32. REQUIRES: the segments hold exactly the blocks
/// of out.size() values.
void DecodeOneBit(const Segments& bytes, std::span<float> out);
void DecodeTwoBit(const Segments& bytes, std::span<float> out);

/// Returns how many values the received blocks hold; nothing if they are not whole blocks.
std::optional<size_t> CountBitValues(Encoding encoding, const Segments& bytes);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_KERNELS_BIT_BLOCKS_H_
