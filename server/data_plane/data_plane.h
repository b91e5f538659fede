#ifndef SLIPSTREAM_SERVER_DATA_PLANE_DATA_PLANE_H_
#define SLIPSTREAM_SERVER_DATA_PLANE_DATA_PLANE_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "common/local/socket_watch.h"
#include "common/settings/run_spec.h"
#include "proto/shard.grpc.pb.h"
#include "server/data_plane/call_guard.h"
#include "server/data_plane/data_plane_engine.h"
#include "server/data_plane/shared_memory_use.h"
#include "server/data_plane/transfer_watch.h"
#include "server/listen/caller.h"
#include "server/listen/latest_calls.h"

namespace slipstream {

class ShardEngine;

/// Serves the data plane of one shard or aggregator over gRPC, through the callback API: no thread
/// belongs to a call. The four methods that carry values use raw buffers, so payloads are never
/// copied into messages.
///
/// Thread-safe. Must outlive the gRPC server that it is registered with; the server's shutdown ends
/// the calls.
class DataPlane final
    : public v1::Shard::WithRawCallbackMethod_Initialize<v1::Shard::WithRawCallbackMethod_Pull<
          v1::Shard::WithRawCallbackMethod_Push<v1::Shard::WithRawCallbackMethod_Exchange<
              v1::Shard::WithCallbackMethod_GetTransports<v1::Shard::Service>>>>> {
 public:
  struct Options {
    ClusterSpec cluster;

    /// WireSpec::chunk_bytes.
    size_t chunk_bytes = 0;

    /// The local socket on which the server also listens, as its clients are told; empty if there
    /// is none.
    std::string local_socket;

    /// The connections of the server; null if nothing bounds them.
    Connections* connections = nullptr;
  };

  /// `engine` must outlive this object. `shard` is the same object if it is a shard's; null for an
  /// aggregator, at which Initialize and Push are UNIMPLEMENTED.
  DataPlane(Options options, DataPlaneEngine& engine, ShardEngine* shard = nullptr);

  grpc::ServerUnaryReactor* GetTransports(grpc::CallbackServerContext* context,
                                          const v1::GetTransportsRequest* request,
                                          v1::GetTransportsReply* reply) override;
  grpc::ServerReadReactor<grpc::ByteBuffer>* Initialize(grpc::CallbackServerContext* context,
                                                        grpc::ByteBuffer* response) override;
  grpc::ServerWriteReactor<grpc::ByteBuffer>* Pull(grpc::CallbackServerContext* context,
                                                   const grpc::ByteBuffer* request) override;
  grpc::ServerReadReactor<grpc::ByteBuffer>* Push(grpc::CallbackServerContext* context,
                                                  grpc::ByteBuffer* response) override;
  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* Exchange(
      grpc::CallbackServerContext* context) override;

  /// Releases the weights that readers through shared memory have had for too long. To be called
  /// several times in a lease.
  void Expire() { memory_use_.Expire(engine_.now()); }

 private:
  /// Notes which member the connection is for: a worker, the server of a shard, or an aggregator.
  /// Returns PERMISSION_DENIED if the caller may not be that member.
  absl::Status NoteMember(const v1::GetTransportsRequest& request, Caller& caller);

  /// Counts the call, and ends it with UNIMPLEMENTED.
  grpc::ServerReadReactor<grpc::ByteBuffer>* RefuseAtAggregator(
      grpc::CallbackServerContext* context, const std::string& method);

  /// Returns the guards of a call of one kind; `latest` is null if a member may have several.
  CallGuard::Guards Guards(LatestCalls* latest) {
    return {.connections = options_.connections, .transfers = watch_, .latest = latest};
  }

  // Constant after construction.
  const Options options_;
  const size_t chunk_bytes_;  // The size of chunks if their reader leaves the choice to the server.

  DataPlaneEngine& engine_;
  ShardEngine* const shard_;

  // One for each method: a slot of a member may have a call of each at a time.
  LatestCalls initializations_;
  LatestCalls pushes_;
  LatestCalls exchanges_;
  SharedMemoryUse memory_use_;
  // Last: their threads call the calls' functions, which use everything above.
  TransferWatch watch_;
  SocketWatch sockets_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_DATA_PLANE_DATA_PLANE_H_
