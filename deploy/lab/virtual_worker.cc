#include "deploy/lab/virtual_worker.h"

#include <string>
#include <utility>
#include <vector>

#include "common/wire/shard_wire.h"
#include "server/control_plane/coordinator_messages.h"
#include "worker/member/model_asking.h"
#include "worker/member/work_progress.h"
#include "worker/training/heartbeat_message.h"

namespace slipstream {
namespace {

/// When a call is made again that the coordinator or a shard could not take yet.
constexpr absl::Duration kPause = absl::Milliseconds(10);

}  // namespace

VirtualWorker::VirtualWorker(const LabContext& lab, WorkerId worker, uint64_t number,
                             const std::function<absl::Status(std::span<float>)>& initial)
    : lab_(lab), worker_(worker), number_(number), initial_(initial), process_(lab.queue) {}

void VirtualWorker::Start() {
  const absl::StatusOr<Identity> identity = lab_.coordinator.OnRegister(
      {.worker = worker_, .host = "virtual", .instance = number_ + 1}, process_.now());
  lab_.on_coordinator_called();
  const bool comes_too_early =
      absl::IsUnavailable(identity.status()) || absl::IsResourceExhausted(identity.status());
  if (comes_too_early) {
    return process_.At(process_.now() + kPause, [this] { Start(); });
  }
  // The run may be over.
  if (!identity.ok()) {
    is_over_ = true;
    return;
  }
  identity_ = *identity;
  AskForModel();
}

void VirtualWorker::Die() {
  is_over_ = true;
  process_.End();
  training_.reset();
}

void VirtualWorker::OnCoordinatorChanged() {
  if (is_over_) return;
  if (training_.has_value()) return training_->OnCoordinatorChanged();
  if (std::exchange(asks_for_model_, false)) AskForModel();
}

void VirtualWorker::AskForModel() {
  std::optional<TensorLayout> layout;
  if (!std::exchange(has_named_model_, true)) layout = lab_.layout;
  const absl::StatusOr<Preparation> prepared = lab_.coordinator.OnPrepareModel(
      identity_, layout, {.examples = lab_.examples}, process_.now());
  lab_.on_coordinator_called();
  prepared.ok() ? OnPrepared(*prepared) : OnEnd(prepared.status(), false);
}

void VirtualWorker::OnPrepared(const Preparation& prepared) {
  switch (prepared.state) {
    case Preparation::State::kWait:
      asks_for_model_ = true;
      return;
    case Preparation::State::kGranted:
      return Initialize(prepared);
    case Preparation::State::kReady:
      training_.emplace(
          lab_, process_, identity_, prepared.shard_map,
          [this](const absl::Status& status, bool ends_run) { OnEnd(status, ends_run); });
      return training_->Start();
  }
}

void VirtualWorker::Initialize(const Preparation& granted) {
  std::vector<float> weights(granted.shard_map.parameters());
  absl::Status status = initial_(weights);
  if (!status.ok()) return OnEnd(status, true);
  for (uint32_t i = 0; i < lab_.servers.size() && status.ok(); ++i) {
    const ParameterRange range = granted.shard_map.range(ShardId{i});
    status =
        lab_.servers[i]->Initialize({identity_, granted.grant, granted.shard_map.fingerprint(), 0},
                                    std::span(weights).subspan(range.begin, range.size()));
  }
  if (status.ok()) {
    status = lab_.coordinator.OnFinishInitialization(identity_, granted.grant, process_.now());
    lab_.on_coordinator_called();
  }
  if (!status.ok() && !absl::IsUnavailable(status)) return OnEnd(status, true);
  process_.At(process_.now() + kPause, [this] { AskForModel(); });
}

void VirtualWorker::Beat() {
  if (is_over_ || identity_.run == 0) return;
  // Few words, as there may be very many workers; Describe has the rest.
  v1::HeartbeatRequest request = Progress();
  if (lab_.run.worker.steps_by_speed && training_.has_value()) {
    request.set_steps_per_second(training_->Figures().steps_per_second);
  }
  const absl::Status taken = Take(lab_.coordinator, request, process_.now());
  lab_.on_coordinator_called();
  // Refused: it is fenced, or the run is over.
  if (!taken.ok() || !training_.has_value()) return;
  training_->OnOrders(lab_.coordinator.WorkEnds(), lab_.coordinator.StepsFor(worker_).value_or(0));
}

v1::HeartbeatRequest VirtualWorker::Progress() const {
  v1::HeartbeatRequest request;
  *request.mutable_identity() = ToWire(identity_);
  if (training_.has_value()) *request.mutable_progress() = ToWire(training_->progress());
  request.set_done_pushing(is_done_);
  return request;
}

v1::HeartbeatRequest VirtualWorker::Describe() const {
  v1::HeartbeatRequest request;
  if (training_.has_value()) {
    request = HeartbeatOf(training_->Figures(), lab_.run.worker.steps_by_speed);
  }
  request.MergeFrom(Progress());
  return request;
}

void VirtualWorker::OnEnd(const absl::Status& status, bool ends_run) {
  if (status.ok()) {
    is_done_ = true;
    return Beat();
  }
  is_over_ = true;
  process_.End();
  std::vector<UnitProgress> progress;
  if (training_.has_value()) progress = training_->progress();
  // This may run within a call of it.
  lab_.queue.At(lab_.queue.now(), [this] { training_.reset(); });
  // A refusal means that it is no member any more.
  const absl::Status left = Take(
      lab_.coordinator,
      LeaveRequestOf(identity_, std::string(status.message()), ends_run, progress), process_.now());
  if (left.ok()) lab_.on_coordinator_called();
}

}  // namespace slipstream
