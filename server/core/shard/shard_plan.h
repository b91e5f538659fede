#ifndef SLIPSTREAM_SERVER_CORE_SHARD_SHARD_PLAN_H_
#define SLIPSTREAM_SERVER_CORE_SHARD_SHARD_PLAN_H_

#include <cstdint>

namespace slipstream {

/// The part of the model that a shard holds, and how long the run is. It is constant once a client
/// has named the model.
struct ShardPlan {
  uint64_t run = 0;
  uint64_t shard_map = 0;
  uint64_t count = 0;  // The number of values of this shard.
  uint64_t batches_total = 0;
  uint64_t batches_per_epoch = 1;
  uint64_t examples_per_epoch = 0;

  template <typename Archive, typename Self>
  static void Parts(Archive& archive, Self& self) {
    archive(self.run, self.shard_map, self.count, self.batches_total, self.batches_per_epoch,
            self.examples_per_epoch);
  }
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CORE_SHARD_SHARD_PLAN_H_
