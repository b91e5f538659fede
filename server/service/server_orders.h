#ifndef SLIPSTREAM_SERVER_SERVICE_SERVER_ORDERS_H_
#define SLIPSTREAM_SERVER_SERVICE_SERVER_ORDERS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "common/layout/shard_map.h"
#include "common/layout/tensor_layout.h"
#include "common/protocol/shard_messages.h"
#include "common/protocol/view.h"
#include "proto/status.pb.h"

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

/// What a shard gives to and takes from its server's conversation with the coordinator.
///
/// Thread-safe in every implementation: called from the conversation's own thread, and never with a
/// lock of its caller held. No call may wait for anything but a short critical section.
class OrdersSink {
 public:
  virtual ~OrdersSink() = default;

  /// Takes newer orders. Called in rising order of their numbers, but some may be skipped.
  virtual void OnOrders(const ServerOrders& orders) = 0;

  /// The figures of now, sent with every call to the coordinator.
  virtual v1::ShardStatus ShardReport() = 0;

  /// True once the initial weights of the newest orders' grant are complete; orders with a higher
  /// grant make it false again, as another client then starts over.
  virtual bool Initialized() = 0;

  /// True once no further update can come: after kDraining the last round is closed and published,
  /// or under hardsync every mini-batch of the run is part of a published version (also while the
  /// phase is still kTraining).
  virtual bool Drained() = 0;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_SERVICE_SERVER_ORDERS_H_
