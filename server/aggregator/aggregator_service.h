#ifndef SLIPSTREAM_SERVER_AGGREGATOR_AGGREGATOR_SERVICE_H_
#define SLIPSTREAM_SERVER_AGGREGATOR_AGGREGATOR_SERVICE_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <memory>
#include <string>

#include "proto/shard.grpc.pb.h"
#include "server/aggregator/aggregator.h"
#include "server/aggregator/uplink.h"
#include "server/listen/connections.h"
#include "server/service/exchange_handlers.h"
#include "server/service/server_orders.h"

namespace slipstream {

/// Serves an aggregator over gRPC: the methods GetTransports, Exchange and Pull of service Shard.
/// The others are left to the server's generic service, which has to answer UNIMPLEMENTED.
///
/// Thread-safe: guarded by the aggregator's mutex. Must outlive the gRPC server that it is
/// registered with; the server's shutdown ends the calls.
class AggregatorService final
    : public v1::Shard::WithGenericMethod_Initialize<v1::Shard::WithRawCallbackMethod_Pull<
          v1::Shard::WithGenericMethod_Push<v1::Shard::WithRawCallbackMethod_Exchange<
              v1::Shard::WithCallbackMethod_GetTransports<v1::Shard::Service>>>>>,
      public OrdersSink {
 public:
  using Options = Aggregator::Options;

  /// `local_socket`: the local socket on which the server also listens, as its clients are told;
  /// empty if there is none. `connections` are those of the server; null if nothing bounds them.
  AggregatorService(const Options& options, std::unique_ptr<Uplinks> uplinks,
                    std::string local_socket = "", Connections* connections = nullptr);

  grpc::ServerUnaryReactor* GetTransports(grpc::CallbackServerContext* context,
                                          const v1::GetTransportsRequest* request,
                                          v1::GetTransportsReply* reply) override {
    return exchanges_.GetTransports(context, *request, *reply);
  }

  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* Exchange(
      grpc::CallbackServerContext* context) override {
    return exchanges_.Exchange(context);
  }

  grpc::ServerWriteReactor<grpc::ByteBuffer>* Pull(grpc::CallbackServerContext* context,
                                                   const grpc::ByteBuffer* request) override;

  void OnOrders(const ServerOrders& orders) override { aggregator_.OnOrders(orders); }
  void OnUpstream(const std::string& address) override { aggregator_.OnUpstream(address); }
  void Describe(v1::SyncServerRequest& request) override;

 private:
  Aggregator aggregator_;
  ExchangeHandlers exchanges_;  // Asks the aggregator. No call is left when it is destroyed.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_AGGREGATOR_AGGREGATOR_SERVICE_H_
