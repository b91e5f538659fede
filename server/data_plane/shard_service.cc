#include "server/data_plane/shard_service.h"

#include <utility>

#include "server/control_plane/orders_wire.h"

namespace slipstream {
namespace {

// How long a report waits for the log. Meanwhile the shard learns of no orders; and a server that
// is not heard for twice as long counts as silent.
constexpr absl::Duration kReportWait = absl::Seconds(1);

}  // namespace

ShardService::ShardService(const Options& options, std::optional<PushLog> push_log,
                           std::string local_socket, Connections* connections)
    : engine_(options, std::move(push_log)),
      data_plane_({.cluster = options.run.cluster,
                   .chunk_bytes = options.run.wire.chunk_bytes,
                   .local_socket = std::move(local_socket),
                   .connections = connections},
                  engine_, &engine_) {}

void ShardService::Describe(v1::SyncServerRequest& request) {
  // The coordinator must not learn what a crash of this server can undo. A report that had to wait
  // before goes first, or one that is newer each time would never be on the disk.
  AwaitReport(absl::ZeroDuration());
  if (!unsynced_.has_value()) unsynced_ = NewReport(request.orders_seen());
  AwaitReport(kReportWait);
  request.set_orders_seen(synced_.orders_seen());
  request.MergeFrom(synced_);
  if (synced_.initialized()) engine_.OnDescribed();
}

void ShardService::AwaitReport(absl::Duration time) {
  if (!unsynced_.has_value() || !engine_.AwaitSynced(unsynced_->recorded, time)) return;
  synced_ = std::move(unsynced_->request);
  unsynced_.reset();
}

ShardService::Report ShardService::NewReport(uint64_t orders_seen) {
  v1::SyncServerRequest request;
  request.set_orders_seen(orders_seen);
  request.set_initialized(engine_.Initialized());
  request.set_drained(engine_.Drained());
  request.set_failure(engine_.Failure());
  request.set_members_max(engine_.MembersMax());
  request.set_generation(Value(engine_.CurrentGeneration()));
  const std::optional<std::vector<SavedVersion>> saved = engine_.Saved();
  request.set_knows_saved(saved.has_value());
  if (saved.has_value()) {
    for (const SavedVersion& each : *saved) *request.add_saved() = ToWire(each);
  }
  *request.mutable_progress() = engine_.Progress();
  *request.mutable_status() = ShardReport();
  return {std::move(request), engine_.Recorded()};
}

v1::ShardStatus ShardService::ShardReport() {
  // This runs several times in a lease, even if nothing else happens.
  data_plane_.Expire();
  v1::ShardStatus status = engine_.Report();
  MutexLock lock(rate_mutex_);
  status.set_updates_per_second(updates_.Add(engine_.now(), status.version()));
  return status;
}

}  // namespace slipstream
