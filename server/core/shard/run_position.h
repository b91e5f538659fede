#ifndef SLIPSTREAM_SERVER_CORE_SHARD_RUN_POSITION_H_
#define SLIPSTREAM_SERVER_CORE_SHARD_RUN_POSITION_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/protocol/view.h"
#include "server/core/run_stages.h"
#include "server/core/shard/shard_machine_options.h"

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

/// Where the run is, as far as the coordinator's orders have told a shard.
struct RunPosition {
  uint64_t orders = 0;  // The number of the newest orders.
  std::optional<ShardPlan> plan;
  Phase phase = Phase::kWaitingForServers;
  Version drain_version{};

  /// The run's stages as the orders have them; empty if they are those of the options.
  std::vector<RunStage> stages;

  /// The place in them.
  uint32_t stage = 0;

  /// The version with which the newest stage began that did not begin at once. A gradient of an
  /// older version is of an earlier stage, which ended without it.
  Version stage_begin{};

  const std::vector<RunStage>& StagesOr(const std::vector<RunStage>& of_options) const {
    return stages.empty() ? of_options : stages;
  }

  /// Names what is wrong with a position that was read from a file; empty if nothing is.
  std::string Fault(const ShardMachineOptions& options) const;

  template <typename Archive, typename Self>
  static void Parts(Archive& archive, Self& self) {
    archive(self.orders, self.plan, self.phase, self.drain_version, self.stages, self.stage,
            self.stage_begin);
  }
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CORE_SHARD_RUN_POSITION_H_
