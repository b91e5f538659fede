#include "server/aggregator/aggregator_service.h"

#include <utility>

#include "server/service/pull_call.h"

namespace slipstream {

AggregatorService::AggregatorService(const Options& options, std::unique_ptr<Uplinks> uplinks,
                                     std::string local_socket, Connections* connections)
    : aggregator_(options, std::move(uplinks)),
      exchanges_({.cluster = options.run.cluster,
                  .chunk_bytes = options.run.wire.chunk_bytes,
                  .local_socket = std::move(local_socket),
                  .connections = connections},
                 aggregator_) {}

grpc::ServerWriteReactor<grpc::ByteBuffer>* AggregatorService::Pull(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request) {
  return new PullCall(aggregator_, exchanges_.Guards(), context->c_call(),
                      exchanges_.default_chunk_bytes(), *request);
}

void AggregatorService::Describe(v1::SyncServerRequest& request) {
  // This runs several times in a lease, even if nothing else happens.
  exchanges_.Expire();
  *request.mutable_aggregator() = aggregator_.Report();
}

}  // namespace slipstream
