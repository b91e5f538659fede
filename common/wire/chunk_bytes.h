#ifndef SLIPSTREAM_COMMON_WIRE_CHUNK_BYTES_H_
#define SLIPSTREAM_COMMON_WIRE_CHUNK_BYTES_H_

#include <cstddef>
#include <cstdint>

#include "common/base/encoding.h"
#include "common/layout/shard_map.h"

namespace slipstream {

/// Bounds of the size of messages where the run does not set it. Small messages let more of a
/// transfer run beside computing and applying, but each costs some thread switches. Measured with
/// shards of 16 to 256 MiB: 2 MiB make shared memory 3 to 9 % faster and TCP no slower; with 4 MiB
/// TCP loses 10 %. With shards of 1 to 4 MiB: 512 KiB are 6 to 13 % faster than 1 MiB, and with 256
/// KiB TCP loses a third. With 8 and 12 workers at 64 MiB, 2 MiB take 0.80 to 0.98 of the time of
/// 512 KiB.
inline constexpr size_t kAutoChunkBytesMin = size_t{512} << 10;
inline constexpr size_t kAutoChunkBytesMax = size_t{2} << 20;

/// The largest shard, in bytes, with which the computing thread makes the exchange itself, where
/// the run does not set the size of messages: overlap would save less than two thread switches
/// cost.
inline constexpr size_t kAutoAloneBytesMax = size_t{1} << 20;

/// Returns the payload of one message, in bytes counted as fp32: `setting`, or if that is 0 a
/// sixteenth of the largest shard between the bounds above. It is a multiple of 64, and rounded
/// down to whole blocks of `encoding`.
size_t ChunkBytes(size_t setting, const ShardMap& map, Encoding encoding = Encoding::kFp32);

/// Returns the bound that takes the place of kAutoAloneBytesMax: one message, if its size is set.
inline size_t AloneBytesMax(size_t setting) { return setting > 0 ? setting : kAutoAloneBytesMax; }

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_WIRE_CHUNK_BYTES_H_
