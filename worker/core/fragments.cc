#include "worker/core/fragments.h"

#include <algorithm>

namespace slipstream {

std::vector<ShardId> Fragments::LeavingAfter(uint64_t taken, uint64_t steps) const {
  std::vector<ShardId> shards;
  if (taken == steps) return shards;
  for (uint32_t shard = 0; shard < shards_; ++shard) {
    const uint32_t fragment = shard % count_;
    const uint64_t point = std::max<uint64_t>(1, steps * fragment / count_);
    if (fragment > 0 && point == taken) shards.push_back(ShardId{shard});
  }
  return shards;
}

}  // namespace slipstream
