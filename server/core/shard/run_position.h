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
#include "server/core/shard/shard_plan.h"

namespace slipstream {

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
