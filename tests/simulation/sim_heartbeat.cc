#include "tests/simulation/sim_heartbeat.h"

#include <utility>

#include "common/wire/shard_wire.h"
#include "worker/core/heartbeat_times.h"
#include "worker/member/work_progress.h"

namespace slipstream {

SimHeartbeat::SimHeartbeat(const SimWorld& world, const std::shared_ptr<Process>& process,
                           CoordinatorCalls& calls, const std::vector<UnitProgress>& progress,
                           std::function<void()> on_news,
                           std::function<void(const absl::Status&)> on_failure)
    : world_(world),
      process_(process),
      calls_(calls),
      progress_(progress),
      on_news_(std::move(on_news)),
      on_failure_(std::move(on_failure)) {}

void SimHeartbeat::Start(const Identity& identity, absl::Duration lease) {
  identity_ = identity;
  lease_ = lease;
  BeatLater();
}

void SimHeartbeat::BeatLater() {
  absl::Duration interval = HeartbeatInterval(lease_, world_.scenario.run.cluster.workers);
  if (is_hurried_) interval = HurriedInterval(interval);
  const absl::Time next = NextHeartbeat(world_.queue.now(), interval, identity_.worker);
  world_.network.AtProcess(process_, next, [this] { Beat(); });
}

void SimHeartbeat::Beat() {
  if (is_closed_) return;
  v1::HeartbeatRequest request;
  *request.mutable_identity() = ToWire(identity_);
  *request.mutable_progress() = ToWire(progress_);
  request.set_done_pushing(is_hurried_);
  if (world_.scenario.run.worker.steps_by_speed) {
    const absl::Duration step = world_.scenario.ComputeTimeOf(identity_.worker);
    request.set_steps_per_second(1 / absl::ToDoubleSeconds(step));
  }
  calls_.Call<v1::HeartbeatReply>(Method::kHeartbeat, request,
                                  [this](const absl::StatusOr<v1::HeartbeatReply>& reply) {
                                    if (!reply.ok()) return on_failure_(reply.status());
                                    news_.Note(*reply);
                                    on_news_();
                                    if (!is_closed_) BeatLater();
                                  });
}

}  // namespace slipstream
