#ifndef SLIPSTREAM_SERVER_CONTROL_PLANE_SERVER_ORDERS_H_
#define SLIPSTREAM_SERVER_CONTROL_PLANE_SERVER_ORDERS_H_

#include <string>

#include "proto/coordinator.pb.h"
#include "server/core/orders.h"

namespace slipstream {

/// The interface through which a shard, or an aggregator, takes part in its server's conversation
/// with the coordinator.
///
/// Thread-safe in every implementation: called from the conversation's own thread, and never with a
/// lock of its caller held. No call but Describe may wait for anything but a short critical
/// section.
class OrdersSink {
 public:
  virtual ~OrdersSink() = default;

  /// Takes newer orders. Called in rising order of their numbers, but some may be skipped.
  virtual void OnOrders(const ServerOrders& orders) = 0;

  /// Takes the address of the shard's server. Called for aggregators, before the orders that came
  /// with it.
  virtual void OnUpstream(const std::string& /*address*/) {}

  /// Called when the coordinator is asked for news, and when it has answered and the orders in its
  /// answer were taken: once it has heard all servers, if it was restarted.
  virtual void OnCoordinatorAsked() {}
  virtual void OnCoordinatorAnswered() {}

  /// Returns whether its own callers wait for the coordinator's next answer.
  virtual bool AwaitsCoordinator() { return false; }

  /// Writes the sender's own state to a call to the coordinator: the fields of the request that an
  /// aggregator lacks (coordinator.proto) or, for an aggregator, its status. A shard with a log
  /// waits a second at most until the log has that state. If it has not by then, the state is an
  /// older one that the log has, and `orders_seen` is that of then.
  virtual void Describe(v1::SyncServerRequest& request) = 0;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CONTROL_PLANE_SERVER_ORDERS_H_
