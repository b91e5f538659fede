#include "common/wire/chunk_bytes.h"

#include <algorithm>

#include "common/base/ids.h"

namespace slipstream {
namespace {

constexpr size_t kChunksPerShard = 16;
constexpr size_t kMultiple = 64;

// One chunk of every worker; four of each are a quarter less than SharedMemoryRoom has, which gives
// the later ones less as it fills.
constexpr size_t kChunkBytesOfAll = size_t{12} << 20;

}  // namespace

size_t ChunkBytes(size_t setting, const ShardMap& map, uint32_t workers) {
  if (setting > 0) return setting;
  size_t values = 0;
  for (uint32_t shard = 0; shard < map.shards(); ++shard) {
    values = std::max(values, map.range(ShardId{shard}).size());
  }
  const size_t wanted = values * sizeof(float) / kChunksPerShard;
  const size_t fits = kChunkBytesOfAll / std::max(1u, workers);
  const size_t share = std::min(wanted, fits) / kMultiple * kMultiple;
  return std::clamp(share, kAutoChunkBytesMin, kAutoChunkBytesMax);
}

}  // namespace slipstream
