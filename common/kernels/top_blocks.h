#ifndef SLIPSTREAM_COMMON_KERNELS_TOP_BLOCKS_H_
#define SLIPSTREAM_COMMON_KERNELS_TOP_BLOCKS_H_

#include <cstddef>
#include <optional>
#include <span>

#include "common/kernels/segments.h"

namespace slipstream {

/// The encoding topk: of each 1,024 values, the 16 of largest magnitude travel, and the others are
/// 0 (sparsification as in Deep Gradient Compression, Lin et al., ICLR 2018, arXiv 1712.01887, but
/// block by block, so that a chunk can be sent before the rest of its gradient is known). It is
/// meant for senders that feed their error back. Of equal magnitudes the first counts.
///
/// A block is, little-endian: a 16-bit number of values that it lacks of 1,024, of which only that
/// of a message's last block is read; the places of the values sent, 16 bits each, rising; their
/// fp32 values. A short block that has fewer values than 16 repeats the place 0xffff. A block with
/// a value that is not finite, or with a place beyond its end, decodes to a value that is no
/// number.

/// The number of values of a block that travel.
inline constexpr size_t kTopValues = 16;

/// Encodes values. REQUIRES: `bytes` has room for exactly these, see EncodedBytes.
void EncodeTop(std::span<const float> values, std::span<std::byte> bytes);

/// Decodes received blocks, cut anywhere, to fp32. REQUIRES: the segments hold exactly the blocks
/// of out.size() values.
void DecodeTop(const Segments& bytes, std::span<float> out);

/// Returns how many values the received blocks hold; nothing if they are not whole blocks.
std::optional<size_t> CountTopValues(const Segments& bytes);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_KERNELS_TOP_BLOCKS_H_
