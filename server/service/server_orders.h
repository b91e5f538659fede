#ifndef SLIPSTREAM_SERVER_SERVICE_SERVER_ORDERS_H_
#define SLIPSTREAM_SERVER_SERVICE_SERVER_ORDERS_H_

#include <cstdint>
#include <string>

#include "proto/coordinator.pb.h"
#include "proto/status.pb.h"
#include "server/core/coordinator_orders.h"

namespace slipstream {

/// What a shard gives to and takes from its server's conversation with the coordinator.
///
/// Thread-safe in every implementation: called from the conversation's own thread, and never with a
/// lock of its caller held. No call may wait for anything but a short critical section.
class OrdersSink {
 public:
  virtual ~OrdersSink() = default;

  /// Takes newer orders. Called in rising order of their numbers, but some may be skipped.
  virtual void OnOrders(const ServerOrders& orders) = 0;

  /// The coordinator is asked what is new; and has answered, and what orders came of it were taken.
  virtual void OnCoordinatorAsked() {}
  virtual void OnCoordinatorAnswered() {}

  /// The figures of now for people, sent with every call to the coordinator.
  virtual v1::ShardStatus ShardReport() = 0;

  /// How far the shard has come, sent with every call to the coordinator, which decides by it.
  virtual v1::ShardProgress Progress() = 0;

  /// True once the initial weights of the newest orders' grant are complete; orders with a higher
  /// grant make it false again, as another client then starts over.
  virtual bool Initialized() = 0;

  /// True once no further update can come: after kDraining the last round is closed and published,
  /// or under hardsync every mini-batch of the run is part of a published version (also while the
  /// phase is still kTraining).
  virtual bool Drained() = 0;

  /// It has memory for the gradients of so many members; 0 while it does not know.
  virtual uint32_t MembersMax() = 0;

  /// Why the shard cannot take part in the run; empty if nothing keeps it. The run fails with it.
  virtual std::string Failure() = 0;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_SERVICE_SERVER_ORDERS_H_
