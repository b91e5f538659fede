#ifndef SLIPSTREAM_SERVER_SERVICE_EXCHANGE_HANDLERS_H_
#define SLIPSTREAM_SERVER_SERVICE_EXCHANGE_HANDLERS_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <cstddef>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/local/socket_watch.h"
#include "common/run/run_spec.h"
#include "proto/shard.pb.h"
#include "server/listen/caller.h"
#include "server/service/call_guard.h"
#include "server/service/latest_calls.h"
#include "server/service/push_engine.h"
#include "server/service/shared_memory_use.h"
#include "server/service/transfer_watch.h"

namespace slipstream {

/// Serves the two methods that shards and aggregators have in common, GetTransports and Exchange.
///
/// Thread-safe. Must outlive the calls that it starts.
class ExchangeHandlers {
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

    /// As TransferWatch::Options has it.
    std::function<bool()> others_wait = [] { return false; };
  };

  /// `engine` must outlive this object.
  ExchangeHandlers(Options options, PushEngine& engine);

  grpc::ServerUnaryReactor* GetTransports(grpc::CallbackServerContext* context,
                                          const v1::GetTransportsRequest& request,
                                          v1::GetTransportsReply& reply);
  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* Exchange(
      grpc::CallbackServerContext* context);

  /// Releases the weights that readers through shared memory have had for too long. To be called
  /// several times in a lease.
  void Expire() { memory_use_.Expire(engine_.now()); }

  /// The chunk size of weights if their reader leaves the choice to the server.
  size_t default_chunk_bytes() const { return chunk_bytes_; }

  /// Returns the objects that guard other calls of the same service; `latest` is that of their
  /// kind, as CallGuard has it.
  CallGuard::Guards Guards(LatestCalls* latest = nullptr) {
    return {.connections = options_.connections, .transfers = watch_, .latest = latest};
  }

 private:
  /// Notes which member the connection is for: a worker, the server of a shard, or an aggregator.
  /// Returns PERMISSION_DENIED if the caller may not be that member.
  absl::Status NoteMember(const v1::GetTransportsRequest& request, Caller& caller);

  // Constant after construction.
  const Options options_;
  const size_t chunk_bytes_;

  PushEngine& engine_;
  LatestCalls exchanges_;
  SharedMemoryUse memory_use_;
  // Last: their threads call the calls' functions, which use everything above.
  TransferWatch watch_;
  SocketWatch sockets_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_SERVICE_EXCHANGE_HANDLERS_H_
