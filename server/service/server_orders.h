#ifndef SLIPSTREAM_SERVER_SERVICE_SERVER_ORDERS_H_
#define SLIPSTREAM_SERVER_SERVICE_SERVER_ORDERS_H_

#include <cstdint>
#include <string>

#include "proto/coordinator.pb.h"
#include "proto/status.pb.h"
#include "server/core/coordinator_orders.h"

namespace slipstream {

/// The interface through which a shard takes part in its server's conversation with the
/// coordinator.
///
/// Thread-safe in every implementation: called from the conversation's own thread, and never with a
/// lock of its caller held. No call may wait for anything but a short critical section.
class OrdersSink {
 public:
  virtual ~OrdersSink() = default;

  /// Takes newer orders. Called in rising order of their numbers, but some may be skipped.
  virtual void OnOrders(const ServerOrders& orders) = 0;

  /// Called when the coordinator is asked for news, and when it has answered and the orders in its
  /// answer were taken.
  virtual void OnCoordinatorAsked() {}
  virtual void OnCoordinatorAnswered() {}

  /// Returns the current figures for people, which are sent with every call to the coordinator.
  virtual v1::ShardStatus ShardReport() = 0;

  /// Returns how far the shard has come, which is sent with every call to the coordinator. The
  /// coordinator decides by it.
  virtual v1::ShardProgress Progress() = 0;

  /// Returns true once the initial weights of the newest orders' grant are complete. Orders with a
  /// higher grant make it false again, because another client then starts over.
  virtual bool Initialized() = 0;

  /// Returns true once no further update can come: after kDraining the last round is closed and
  /// published, or under hardsync every mini-batch of the run is part of a published version (also
  /// while the phase is still kTraining).
  virtual bool Drained() = 0;

  /// Returns for how many members' gradients the shard has memory; 0 while it does not know.
  virtual uint32_t MembersMax() = 0;

  /// Returns why the shard cannot take part in the run; empty if it can. The run fails with it.
  virtual std::string Failure() = 0;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_SERVICE_SERVER_ORDERS_H_
