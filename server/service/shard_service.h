#ifndef SLIPSTREAM_SERVER_SERVICE_SHARD_SERVICE_H_
#define SLIPSTREAM_SERVER_SERVICE_SHARD_SERVICE_H_

#include <grpcpp/support/server_callback.h>

#include <optional>
#include <string>

#include "common/base/mutex.h"
#include "proto/shard.grpc.pb.h"
#include "server/listen/connections.h"
#include "server/service/exchange_handlers.h"
#include "server/service/latest_calls.h"
#include "server/service/server_orders.h"
#include "server/service/shard_engine.h"
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
                                          v1::GetTransportsReply* reply) override {
    return exchanges_.GetTransports(context, *request, *reply);
  }

  grpc::ServerReadReactor<grpc::ByteBuffer>* Initialize(grpc::CallbackServerContext* context,
                                                        grpc::ByteBuffer* response) override;
  grpc::ServerWriteReactor<grpc::ByteBuffer>* Pull(grpc::CallbackServerContext* context,
                                                   const grpc::ByteBuffer* request) override;
  grpc::ServerReadReactor<grpc::ByteBuffer>* Push(grpc::CallbackServerContext* context,
                                                  grpc::ByteBuffer* response) override;
  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* Exchange(
      grpc::CallbackServerContext* context) override {
    return exchanges_.Exchange(context);
  }

  void OnOrders(const ServerOrders& orders) override { engine_.OnOrders(orders); }
  void OnCoordinatorAsked() override { engine_.OnCoordinatorAsked(); }
  void OnCoordinatorAnswered() override { engine_.OnCoordinatorAnswered(); }
  bool AwaitsCoordinator() override { return engine_.AwaitsCoordinator(); }

  /// If the log is late, describes the shard as it was when the log had everything last.
  void Describe(v1::SyncServerRequest& request) override;

  bool Initialized() { return engine_.Initialized(); }

  /// Returns the current figures for people.
  v1::ShardStatus ShardReport();

  /// Does the same as ShardEngine::Drain.
  absl::Status Drain(absl::Duration time) { return engine_.Drain(time); }

  bool IsAtDisk() { return engine_.IsAtDisk(); }

  /// Does the same as ShardEngine::FinishPushLog. REQUIRES: the server is shut down.
  std::string FinishPushLog() { return engine_.FinishPushLog(); }

 private:
  /// A report to the coordinator that may leave once so many events are on the disk.
  struct Report {
    v1::SyncServerRequest request;
    uint64_t recorded = 0;
  };

  /// Returns a report that knows the orders `orders_seen`.
  Report NewReport(uint64_t orders_seen);

  /// Makes unsynced_, if there is one, the report that may be told, if the log has it in time.
  void AwaitReport(absl::Duration time);

  // Owned by the thread that describes the shard: the newest report that may be told, and one that
  // is not on the disk yet.
  v1::SyncServerRequest synced_;
  std::optional<Report> unsynced_;

  // One for each method: a member may have a call of each at a time.
  LatestCalls pushes_;
  LatestCalls initializations_;

  Mutex rate_mutex_;
  RateWindow updates_ ABSL_GUARDED_BY(rate_mutex_);
  // Last: their threads call the calls' functions, which use everything above.
  ShardEngine engine_;
  ExchangeHandlers exchanges_;  // Asks the engine. No call is left when it is destroyed.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_SERVICE_SHARD_SERVICE_H_
