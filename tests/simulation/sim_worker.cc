#include "tests/simulation/sim_worker.h"

#include <fmt/format.h>

#include <utility>

#include "common/base/check.h"
#include "common/wire/control_wire.h"
#include "common/wire/shard_wire.h"

namespace slipstream {

SimWorker::SimWorker(const SimWorld& world, uint64_t number, std::optional<WorkerId> asked,
                     std::function<void(const absl::Status&)> on_end)
    : world_(world),
      number_(number),
      asked_(asked),
      on_end_(std::move(on_end)),
      calls_(world, process_, number),
      heartbeat_(
          world, process_, calls_, progress_, [this] { OnNews(); },
          [this](const absl::Status& status) { Fail(status); }) {}

void SimWorker::Crash() {
  world_.trace.Line("process {} crashes", number_);
  process_->is_dead = true;
  world_.network.DropAllOf(process_);
}

void SimWorker::Freeze(absl::Duration duration) {
  // If a freeze were extended, calls that came in between would run before older ones that wait.
  if (world_.queue.now() < process_->frozen_until) return;
  world_.trace.Line("process {} stands still", number_);
  process_->frozen_until = world_.queue.now() + duration;
}

// Joining.

void SimWorker::Start() {
  v1::RegisterRequest request;
  if (asked_.has_value()) request.set_worker(Value(*asked_));
  request.set_host("simulated");
  request.set_process(static_cast<uint32_t>(number_));
  request.set_instance(number_ + 1);
  calls_.Call<v1::RegisterReply>(
      Method::kRegister, request, [this](const absl::StatusOr<v1::RegisterReply>& reply) {
        if (!reply.ok()) return End(reply.status());
        identity_ = FromWire(reply->identity());
        asked_ = identity_.worker;
        lease_ = absl::Milliseconds(reply->lease_ms());
        world_.trace.Line("process {} is worker {}#{}", number_, Value(identity_.worker),
                          Value(identity_.incarnation));
        calls_.PersistFor(MembersPatience(lease_));
        heartbeat_.Start(identity_, lease_);
        asking_.emplace(identity_, ModelProposal{.layout = world_.gradients.layout(),
                                                 .examples = world_.scenario.examples_per_epoch,
                                                 .data_fingerprint = world_.scenario.seed});
        PrepareModel();
      });
}

void SimWorker::PrepareModel() {
  calls_.Call<v1::PrepareModelReply>(Method::kPrepareModel, asking_->Request(),
                                     [this](const absl::StatusOr<v1::PrepareModelReply>& reply) {
                                       if (!reply.ok()) return Fail(reply.status());
                                       const absl::StatusOr<std::optional<PreparedModel>> model =
                                           asking_->OnReply(*reply);
                                       PS_CHECK(model.ok());
                                       model->has_value() ? OnPrepared(**model) : PrepareModel();
                                     });
}

void SimWorker::OnPrepared(const PreparedModel& model) {
  if (!shards_.has_value()) JoinShards(model.map);
  if (model.grant > 0) return Initialize(model.grant);
  training_->Start();
}

void SimWorker::JoinShards(const ShardMap& map) {
  shards_.emplace(world_, process_, identity_, lease_, map);
  training_.emplace(world_, process_, *shards_, calls_, heartbeat_, number_, progress_,
                    [this](const absl::Status& status) { OnTrained(status); });
  evaluator_.emplace(world_, process_, *shards_, calls_,
                     [this](const absl::Status& status) { Fail(status); });
}

void SimWorker::Initialize(uint64_t grant) {
  world_.trace.Line("worker {} initialises under grant {}", Value(identity_.worker), grant);
  training_->Initialize(grant, [this](const absl::Status& status) {
    status.ok() ? FinishInitialization() : OnInitialized(status);
  });
}

void SimWorker::FinishInitialization() {
  calls_.Call<v1::FinishInitializationReply>(
      Method::kFinishInitialization, asking_->Finish(),
      [this](const absl::StatusOr<v1::FinishInitializationReply>& reply) {
        OnInitialized(reply.status());
      });
}

void SimWorker::OnInitialized(const absl::Status& status) {
  const absl::Status over = asking_->OnInitialized(status);
  over.ok() ? PrepareModel() : Fail(over);
}

// Callbacks.

void SimWorker::OnTrained(const absl::Status& status) {
  if (!status.ok()) return Fail(status);
  world_.trace.Line("worker {} has no work left", Value(identity_.worker));
  heartbeat_.Hurry();
  if (heartbeat_.news().phase == Phase::kFinished) Leave(absl::OkStatus());
}

void SimWorker::OnNews() {
  const HeartbeatNews& news = heartbeat_.news();
  if (news.phase == Phase::kFailed) {
    return Fail(absl::AbortedError("the run failed: " + news.failure));
  }
  if (news.phase == Phase::kFinished && heartbeat_.is_hurried()) return Leave(absl::OkStatus());
  if (evaluator_.has_value() && news.order.has_value()) evaluator_->OnOrder(*news.order);
}

// The end.

void SimWorker::Fail(const absl::Status& status) {
  if (is_leaving_) return;
  world_.trace.Line("worker {}#{} fails: {}", Value(identity_.worker), Value(identity_.incarnation),
                    std::string(status.message()));
  Leave(status);
}

void SimWorker::Leave(const absl::Status& status) {
  is_leaving_ = true;
  calls_.Close();
  heartbeat_.Close();
  if (shards_.has_value()) {
    training_->Close();
    evaluator_->Close();
  }
  world_.network.DropAllOf(process_);
  if (absl::IsFailedPrecondition(status)) return End(status);  // It was fenced: no member any more.
  const std::string failure = status.ok() ? "" : std::string(status.message());
  const v1::LeaveRequest request = LeaveRequestOf(identity_, failure, false, progress_);
  world_.network.Call(Method::kLeave, request.SerializeAsString(), process_,
                      [this, status](const absl::StatusOr<std::string>&) { End(status); });
}

void SimWorker::End(const absl::Status& status) {
  world_.trace.Line("process {} ends", number_);
  process_->is_dead = true;
  world_.history.Add(WorkerEnded{identity_, status});
  on_end_(status);
}

std::string SimWorker::Describe() const {
  std::string text = fmt::format("process {} worker {}#{}", number_, Value(identity_.worker),
                                 Value(identity_.incarnation));
  if (process_->is_dead) return text + " dead";
  text += fmt::format(" hurried {} leaving {}", heartbeat_.is_hurried(), is_leaving_);
  if (!shards_.has_value()) return text;
  return text + fmt::format(" reading {} {}", evaluator_->is_reading(), training_->Describe());
}

}  // namespace slipstream
