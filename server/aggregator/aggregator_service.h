#ifndef SLIPSTREAM_SERVER_AGGREGATOR_AGGREGATOR_SERVICE_H_
#define SLIPSTREAM_SERVER_AGGREGATOR_AGGREGATOR_SERVICE_H_

#include <memory>
#include <string>

#include "server/aggregator/aggregator.h"
#include "server/aggregator/uplink.h"
#include "server/control_plane/server_orders.h"
#include "server/data_plane/data_plane.h"
#include "server/listen/connections.h"

namespace slipstream {

/// An aggregator with the data plane that it is reached by.
///
/// Thread-safe: guarded by the aggregator's mutex. Must outlive the gRPC server.
class AggregatorService final : public OrdersSink {
 public:
  using Options = Aggregator::Options;

  /// `local_socket` and `connections`: as in DataPlane::Options.
  AggregatorService(const Options& options, std::unique_ptr<Uplinks> uplinks,
                    std::string local_socket = "", Connections* connections = nullptr)
      : aggregator_(options, std::move(uplinks)),
        data_plane_({.cluster = options.run.cluster,
                     .chunk_bytes = options.run.wire.chunk_bytes,
                     .local_socket = std::move(local_socket),
                     .connections = connections},
                    aggregator_) {}

  DataPlane& data_plane() { return data_plane_; }

  void OnOrders(const ServerOrders& orders) override { aggregator_.OnOrders(orders); }
  void OnUpstream(const std::string& address) override { aggregator_.OnUpstream(address); }

  void Describe(v1::SyncServerRequest& request) override {
    data_plane_.Expire();  // This runs several times in a lease, even if nothing else happens.
    *request.mutable_aggregator() = aggregator_.Report();
  }

 private:
  Aggregator aggregator_;
  DataPlane data_plane_;  // Asks the aggregator. No call is left when it is destroyed.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_AGGREGATOR_AGGREGATOR_SERVICE_H_
