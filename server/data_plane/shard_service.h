#ifndef SLIPSTREAM_SERVER_DATA_PLANE_SHARD_SERVICE_H_
#define SLIPSTREAM_SERVER_DATA_PLANE_SHARD_SERVICE_H_

#include <optional>
#include <string>

#include "common/base/mutex.h"
#include "proto/coordinator.pb.h"
#include "server/control_plane/server_orders.h"
#include "server/data_plane/data_plane.h"
#include "server/data_plane/shard_engine.h"
#include "server/listen/connections.h"
#include "server/status/rate_window.h"
#include "server/storage/push_log.h"

namespace slipstream {

/// A shard with the data plane that it is reached by, and what it tells the coordinator.
///
/// Thread-safe: guarded by its engine's mutex. Must outlive the gRPC server.
class ShardService final : public OrdersSink {
 public:
  using Options = ShardEngine::Options;

  /// `local_socket` and `connections`: as in DataPlane::Options.
  explicit ShardService(const Options& options, std::optional<PushLog> push_log = std::nullopt,
                        std::string local_socket = "", Connections* connections = nullptr);

  DataPlane& data_plane() { return data_plane_; }

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

  Mutex rate_mutex_;
  RateWindow updates_ ABSL_GUARDED_BY(rate_mutex_);
  ShardEngine engine_;
  DataPlane data_plane_;  // Asks the engine. No call is left when it is destroyed.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_DATA_PLANE_SHARD_SERVICE_H_
