#ifndef SLIPSTREAM_SERVER_CORE_COORDINATOR_ORDERS_H_
#define SLIPSTREAM_SERVER_CORE_COORDINATOR_ORDERS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "common/base/ids.h"
#include "common/layout/shard_map.h"
#include "common/layout/tensor_layout.h"
#include "common/protocol/shard_messages.h"
#include "common/protocol/view.h"

namespace slipstream {

/// What the model is once a client has named it; the same for the rest of the run.
struct ModelOrders {
  TensorLayout layout;
  ShardMap shard_map;

  /// Mini-batches and examples; the last mini-batch of an epoch may be smaller.
  uint64_t batches_total = 0;
  uint64_t batches_per_epoch = 0;
  uint64_t examples_per_epoch = 0;

  friend bool operator==(const ModelOrders&, const ModelOrders&) = default;
};

/// What the coordinator tells every shard server; whole, so each replaces the one before.
struct ServerOrders {
  /// Rises with every change; 0: none yet.
  uint64_t number = 0;
  uint64_t run = 0;
  Phase phase = Phase::kWaitingForServers;

  /// Number 0 and empty until the first members are named.
  View view;
  std::optional<ModelOrders> model;

  /// Where work comes in rounds, of kTraining: the open round is the last one with work.
  bool ends_work = false;

  /// Where work comes in rounds, of kDraining: the version of shard 0 that holds the last
  /// mini-batch. Rounds close in step on all shards, so each has drained once it has published that
  /// version.
  Version drain_version{};

  /// The only grant whose Initialize may be taken, and from whom; 0 for none. A higher grant starts
  /// initialisation over.
  uint64_t grant = 0;
  Identity initializer;

  /// The run is over and every worker has left.
  bool may_exit = false;

  /// Of kFailed: why.
  std::string failure;

  friend bool operator==(const ServerOrders&, const ServerOrders&) = default;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CORE_COORDINATOR_ORDERS_H_
