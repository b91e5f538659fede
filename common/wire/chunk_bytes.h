#ifndef SLIPSTREAM_COMMON_WIRE_CHUNK_BYTES_H_
#define SLIPSTREAM_COMMON_WIRE_CHUNK_BYTES_H_

#include <cstddef>
#include <cstdint>

#include "common/base/encoding.h"
#include "common/layout/shard_map.h"

namespace slipstream {

/// How large messages are whose size is left to us. Small ones let more of a transfer run beside
/// computing and applying; each costs some changes of thread. Measured over shards of 16 to 256
/// MiB: 2 MiB make shared memory 3 to 9 % faster and TCP no slower; with 4 MiB TCP loses 10 %. Over
/// those of 1 to 4 MiB: 512 KiB make it 6 to 13 % faster than 1 MiB, with 256 KiB TCP loses a
/// third. With 8 and 12 workers at 64 MiB, 2 MiB take 0.80 to 0.98 of the time that 512 KiB do.
inline constexpr size_t kAutoChunkBytesMin = size_t{512} << 10;
inline constexpr size_t kAutoChunkBytesMax = size_t{2} << 20;

/// With shards of at most so many bytes the thread that computes exchanges by itself, where the
/// size of messages is left to us: what could overlap costs less than two changes of thread.
inline constexpr size_t kAutoAloneBytesMax = size_t{1} << 20;

/// Payload of one message, were it fp32: `setting`, or where that is 0 a sixteenth of the largest
/// shard between the bounds above. A multiple of 64, and rounded down to whole blocks of
/// `encoding`.
size_t ChunkBytes(size_t setting, const ShardMap& map, Encoding encoding = Encoding::kFp32);

/// What takes the place of the bound above: a message, where its size is set.
inline size_t AloneBytesMax(size_t setting) { return setting > 0 ? setting : kAutoAloneBytesMax; }

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_WIRE_CHUNK_BYTES_H_
