#include "worker/core/fragments.h"

namespace slipstream {

std::vector<ShardId> Fragments::LeavingAfter(uint64_t taken, uint64_t steps,
                                             std::vector<ShardId> unsent) const {
  if (taken == steps) return {};
  std::erase_if(unsent, [&](ShardId shard) {
    const uint32_t fragment = Value(shard) % count_;
    return fragment == 0 || steps * fragment / count_ > taken;
  });
  return unsent;
}

}  // namespace slipstream
