#ifndef SLIPSTREAM_SERVER_CORE_ORDERS_H_
#define SLIPSTREAM_SERVER_CORE_ORDERS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/layout/shard_map.h"
#include "common/layout/tensor_layout.h"
#include "common/protocol/shard_messages.h"
#include "common/protocol/view.h"
#include "server/core/run_stages.h"
#include "server/core/saved_version.h"

namespace slipstream {

/// The model of a run, once a client has named it. It stays the same for the rest of the run.
struct ModelOrders {
  TensorLayout layout;
  ShardMap shard_map;

  /// The numbers of mini-batches and examples. The last mini-batch of an epoch may be smaller.
  uint64_t batches_total = 0;
  uint64_t batches_per_epoch = 0;
  uint64_t examples_per_epoch = 0;

  friend bool operator==(const ModelOrders&, const ModelOrders&) = default;
};

/// Readers that the run waits for: how many versions each may lag behind at most, by instance.
using LagLimits = std::map<uint64_t, uint64_t>;

/// The orders of the coordinator to every shard server. They are always complete, so each replaces
/// the one before.
struct ServerOrders {
  /// Rises with every change; 0 if there have been no orders yet.
  uint64_t number = 0;
  uint64_t run = 0;

  /// The run's stages, if a change has made others of them than the settings have; else empty.
  std::vector<RunStage> stages;

  /// The place, from 0, in the run's stages. Phases begin anew with kTraining when it rises to a
  /// stage that does not begin at once.
  uint32_t stage = 0;
  Phase phase = Phase::kWaitingForServers;

  /// Has number 0 and no members until the first view is made.
  View view;
  std::optional<ModelOrders> model;

  /// Set in kTraining, where work comes in rounds, if the open round is the last one with work.
  bool ends_work = false;

  /// The version of shard 0 that holds the last mini-batch of the stage. Set in kDraining, where
  /// work comes in rounds. Rounds close in step on all shards, so each has drained once it has
  /// published that version.
  Version drain_version{};

  /// The only grant under which Initialize is accepted, and the client that holds it; 0 if there is
  /// none. A higher grant starts initialisation over.
  uint64_t grant = 0;
  Identity initializer;

  /// Set once servers may exit: the run is over, every worker has left, and the settings say so.
  bool may_exit = false;

  /// The readers that workers wait for; none unless they train.
  LagLimits awaited_readers;

  /// Why the run failed. Set in kFailed.
  std::string failure;

  /// By shard: the generation that it is to be in, and where that begins. Empty while all are in
  /// their first generation.
  std::vector<ShardReturn> returns;
  SaveOrder save;

  friend bool operator==(const ServerOrders&, const ServerOrders&) = default;

  /// All but the model, which follows from what the clients named.
  template <typename Archive, typename Self>
  static void Parts(Archive& archive, Self& self) {
    archive(self.number, self.run, self.stages, self.stage, self.phase, self.view, self.ends_work,
            self.drain_version, self.grant, self.initializer, self.may_exit, self.awaited_readers,
            self.failure, self.returns, self.save);
  }
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CORE_ORDERS_H_
