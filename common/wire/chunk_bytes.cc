#include "common/wire/chunk_bytes.h"

#include <algorithm>

#include "common/base/ids.h"

namespace slipstream {
namespace {

constexpr size_t kChunksPerShard = 16;
constexpr size_t kMultiple = 64;

}  // namespace

size_t ChunkBytes(size_t setting, const ShardMap& map, Encoding encoding) {
  const size_t block_bytes = RowOf(encoding).block_values * sizeof(float);
  if (setting > 0) return setting / block_bytes * block_bytes;
  size_t values = 0;
  for (uint32_t shard = 0; shard < map.shards(); ++shard) {
    values = std::max(values, map.range(ShardId{shard}).size());
  }
  const size_t share = values * sizeof(float) / kChunksPerShard / kMultiple * kMultiple;
  return std::clamp(share, kAutoChunkBytesMin, kAutoChunkBytesMax) / block_bytes * block_bytes;
}

}  // namespace slipstream
