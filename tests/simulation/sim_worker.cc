#include "tests/simulation/sim_worker.h"

#include <fmt/format.h>

#include <utility>

#include "common/base/check.h"
#include "common/wire/control_wire.h"
#include "common/wire/shard_wire.h"

namespace slipstream {
namespace {

// The same value as in WorkerProgram.
constexpr uint32_t kPrepareWaitMs = 500;

}  // namespace

SimWorker::SimWorker(const SimWorld& world, uint64_t number, std::optional<WorkerId> asked,
                     std::function<void(const absl::Status&)> on_end)
    : world_(world),
      number_(number),
      asked_(asked),
      on_end_(std::move(on_end)),
      calls_(world, process_, number),
      heartbeat_(world, process_, calls_, progress_,
                 [this](const absl::StatusOr<v1::HeartbeatReply>& reply) { OnBeat(reply); }) {}

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
        heartbeat_.Start(identity_, lease_);
        PrepareModel();
      });
}

void SimWorker::PrepareModel() {
  v1::PrepareModelRequest request;
  *request.mutable_identity() = ToWire(identity_);
  if (!has_named_model_) *request.mutable_layout() = ToWire(world_.gradients.layout());
  request.set_examples(world_.scenario.examples_per_epoch);
  request.set_data_fingerprint(world_.scenario.seed);
  request.set_wait_ms(kPrepareWaitMs);
  calls_.Call<v1::PrepareModelReply>(Method::kPrepareModel, request,
                                     [this](const absl::StatusOr<v1::PrepareModelReply>& reply) {
                                       if (!reply.ok()) return Fail(reply.status());
                                       has_named_model_ = true;
                                       OnPrepared(*reply);
                                     });
}

void SimWorker::OnPrepared(const v1::PrepareModelReply& reply) {
  if (reply.state() == v1::PrepareModelReply::WAIT) return PrepareModel();
  if (!shards_.has_value()) JoinShards(reply.shard_map());
  if (reply.state() == v1::PrepareModelReply::GRANTED) return Initialize(reply.grant());
  training_->Start();
}

void SimWorker::JoinShards(const v1::ShardMap& wire) {
  const absl::StatusOr<ShardMap> map = FromWire(wire, world_.gradients.layout());
  PS_CHECK(map.ok());
  shards_.emplace(world_, process_, identity_, lease_, *map);
  training_.emplace(world_, process_, *shards_, calls_, heartbeat_, number_, progress_,
                    [this](const absl::Status& status) { OnTrained(status); });
  evaluator_.emplace(world_, process_, *shards_, calls_,
                     [this](const absl::Status& status) { Fail(status); });
}

void SimWorker::Initialize(uint64_t grant) {
  world_.trace.Line("worker {} initialises under grant {}", Value(identity_.worker), grant);
  training_->Initialize(grant, [this, grant] { FinishInitialization(grant); });
}

void SimWorker::FinishInitialization(uint64_t grant) {
  v1::FinishInitializationRequest request;
  *request.mutable_identity() = ToWire(identity_);
  request.set_grant(grant);
  calls_.Call<v1::FinishInitializationReply>(
      Method::kFinishInitialization, request,
      [this](const absl::StatusOr<v1::FinishInitializationReply>& reply) {
        if (!reply.ok()) return Fail(reply.status());
        PrepareModel();
      });
}

// Callbacks.

void SimWorker::OnTrained(const absl::Status& status) {
  if (!status.ok()) return Fail(status);
  world_.trace.Line("worker {} has no work left", Value(identity_.worker));
  heartbeat_.Hurry();
  if (phase_ == Phase::kFinished) Leave(absl::OkStatus());
}

void SimWorker::OnBeat(const absl::StatusOr<v1::HeartbeatReply>& reply) {
  if (!reply.ok()) return Fail(reply.status());
  const absl::StatusOr<Phase> phase = FromWire(reply->phase());
  PS_CHECK(phase.ok());
  phase_ = *phase;
  if (phase_ == Phase::kFailed) {
    return Fail(absl::AbortedError("the run failed: " + reply->failure()));
  }
  if (phase_ == Phase::kFinished && heartbeat_.is_hurried()) return Leave(absl::OkStatus());
  if (evaluator_.has_value()) {
    evaluator_->OnOrder(reply->evaluation(), reply->evaluation_final());
  }
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
  v1::LeaveRequest request;
  *request.mutable_identity() = ToWire(identity_);
  if (!status.ok()) request.set_failure(std::string(status.message()));
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
