#ifndef SLIPSTREAM_SERVER_SERVICE_SHARD_SERVICE_H_
#define SLIPSTREAM_SERVER_SERVICE_SHARD_SERVICE_H_

#include <grpcpp/support/server_callback.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "common/base/mutex.h"
#include "common/local/socket_watch.h"
#include "proto/shard.grpc.pb.h"
#include "server/listen/connections.h"
#include "server/service/latest_calls.h"
#include "server/service/server_orders.h"
#include "server/service/shard_engine.h"
#include "server/service/shared_memory_use.h"
#include "server/service/transfer_watch.h"
#include "server/status/rate_window.h"
#include "server/storage/push_log.h"

namespace slipstream {

/// Serves the data plane of one shard over gRPC, through the callback API: no thread belongs to a
/// call. The four methods that carry values use raw buffers, so payloads are never copied into
/// messages.
///
/// Thread-safe: guarded by its engine's mutex. Must outlive the gRPC server that it is registered
/// with; the server's shutdown ends the calls.
class ShardService final
    : public v1::Shard::WithRawCallbackMethod_Initialize<v1::Shard::WithRawCallbackMethod_Pull<
          v1::Shard::WithRawCallbackMethod_Push<v1::Shard::WithRawCallbackMethod_Exchange<
              v1::Shard::WithCallbackMethod_GetTransports<v1::Shard::Service>>>>>,
      public OrdersSink {
 public:
  using Options = ShardEngine::Options;

  /// `local_socket`: the local socket on which the server also listens, as its clients are told;
  /// empty if there is none. `connections` are those of the server; null if nothing bounds them.
  explicit ShardService(const Options& options, std::optional<PushLog> push_log = std::nullopt,
                        std::string local_socket = "", Connections* connections = nullptr);

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

  void OnOrders(const ServerOrders& orders) override { engine_.OnOrders(orders); }
  void OnCoordinatorAsked() override { engine_.OnCoordinatorAsked(); }
  void OnCoordinatorAnswered() override { engine_.OnCoordinatorAnswered(); }
  v1::ShardStatus ShardReport() override;
  v1::ShardProgress Progress() override { return engine_.Progress(); }
  bool Initialized() override { return engine_.Initialized(); }
  bool Drained() override { return engine_.Drained(); }
  uint32_t MembersMax() override { return engine_.MembersMax(); }
  std::string Failure() override { return engine_.Failure(); }

  /// Does the same as ShardEngine::FinishPushLog. REQUIRES: the server is shut down.
  std::string FinishPushLog() { return engine_.FinishPushLog(); }

 private:
  /// Notes which member the connection is for: a call that asks for transports says so. Returns
  /// PERMISSION_DENIED if the caller may not be that member.
  absl::Status NoteMember(const v1::GetTransportsRequest& request, grpc_call* call);

  // Constant after construction.
  const size_t chunk_bytes_;
  const std::string local_socket_;
  Connections* const connections_;
  const uint32_t servers_;  // The number of servers of the run.
  const std::function<absl::Time()> now_;

  const absl::Duration lease_;

  // One for each method: a member may have a call of each at a time.
  LatestCalls pushes_;
  LatestCalls exchanges_;
  LatestCalls initializations_;

  SharedMemoryUse memory_use_;
  Mutex rate_mutex_;
  RateWindow updates_ ABSL_GUARDED_BY(rate_mutex_);
  // Last: their threads call the calls' functions, which use everything above.
  ShardEngine engine_;
  TransferWatch watch_;  // Asks the engine. No call is left when it is destroyed.
  SocketWatch sockets_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_SERVICE_SHARD_SERVICE_H_
