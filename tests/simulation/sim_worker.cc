#include "tests/simulation/sim_worker.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "common/base/check.h"
#include "common/wire/control_wire.h"
#include "common/wire/shard_wire.h"
#include "worker/core/push_verdict.h"

namespace slipstream {
namespace {

constexpr uint64_t kStreams = 10'000;  // Of the seed, from here on: one of each process.

// As of the worker's shells.
constexpr uint32_t kPrepareWaitMs = 500;
constexpr uint32_t kUnitWaitMs = 100;

}  // namespace

SimWorker::SimWorker(const World& world, uint64_t number, std::optional<WorkerId> asked,
                     std::function<void(const absl::Status&)> on_end)
    : world_(world),
      number_(number),
      asked_(asked),
      on_end_(std::move(on_end)),
      chance_(world.scenario.seed, kStreams + number) {}

void SimWorker::Crash() {
  world_.trace.Line("process {} crashes", number_);
  process_->is_dead = true;
  world_.network.DropAllOf(process_);
}

void SimWorker::Freeze(absl::Duration duration) {
  world_.trace.Line("process {} stands still", number_);
  process_->frozen_until = world_.queue.now() + duration;
}

// Calls to the coordinator.

void SimWorker::Try(Method method, const std::string& request,
                    const std::shared_ptr<std::optional<RetrySchedule>>& schedule,
                    std::function<void(const absl::StatusOr<std::string>&)> done) {
  const auto on_reply = [this, method, request, schedule,
                         done = std::move(done)](const absl::StatusOr<std::string>& reply) {
    if (reply.ok() || !IsTransient(reply.status())) return done(reply);
    if (!schedule->has_value()) {
      schedule->emplace(RetryOptions(), number_ + calls_++, world_.queue.now());
    }
    const std::optional<absl::Duration> wait = (*schedule)->Next(world_.queue.now());
    if (!wait.has_value()) return done(reply);
    world_.network.AtProcess(
        process_, world_.queue.now() + *wait,
        [this, method, request, schedule, done] { Try(method, request, schedule, done); });
  };
  world_.network.Call(method, request, process_, on_reply);
}

// Joining.

void SimWorker::Start() {
  v1::RegisterRequest request;
  if (asked_.has_value()) request.set_worker(Value(*asked_));
  request.set_host("simulated");
  request.set_process(static_cast<uint32_t>(number_));
  request.set_instance(number_ + 1);
  Call<v1::RegisterReply>(
      Method::kRegister, request, [this](const absl::StatusOr<v1::RegisterReply>& reply) {
        if (!reply.ok()) return End(reply.status());
        identity_ = FromWire(reply->identity());
        asked_ = identity_.worker;
        lease_ = absl::Milliseconds(reply->lease_ms());
        world_.trace.Line("process {} is worker {}#{}", number_, Value(identity_.worker),
                          Value(identity_.incarnation));
        BeatLater();
        PrepareModel();
      });
}

void SimWorker::PrepareModel() {
  if (is_leaving_) return;
  v1::PrepareModelRequest request;
  *request.mutable_identity() = ToWire(identity_);
  *request.mutable_layout() = ToWire(world_.gradients.layout());
  request.set_examples(world_.scenario.examples_per_epoch);
  request.set_data_fingerprint(world_.scenario.seed);
  request.set_wait_ms(kPrepareWaitMs);
  Call<v1::PrepareModelReply>(Method::kPrepareModel, request,
                              [this](const absl::StatusOr<v1::PrepareModelReply>& reply) {
                                if (is_leaving_) return;
                                if (!reply.ok()) return Fail(reply.status());
                                OnPrepared(*reply);
                              });
}

void SimWorker::OnPrepared(const v1::PrepareModelReply& reply) {
  if (reply.state() == v1::PrepareModelReply::WAIT) return PrepareModel();
  const absl::StatusOr<ShardMap> map = FromWire(reply.shard_map(), world_.gradients.layout());
  PS_CHECK(map.ok());
  map_ = *map;
  if (!core_.has_value()) {
    core_.emplace(WorkerCore::Options{.shards = map_->shards(),
                                      .has_rounds = world_.scenario.has_rounds(),
                                      .releases_unused = world_.scenario.blocks()});
    weights_.resize(map_->parameters());
    answers_.resize(map_->shards());
    lanes_ = MakeLanes();
  }
  if (reply.state() == v1::PrepareModelReply::GRANTED) return Initialize(reply.grant());
  Advance();
}

std::vector<std::unique_ptr<ShardLane>> SimWorker::MakeLanes() const {
  RetryOptions retry;
  retry.give_up_after = std::max(retry.give_up_after, 3 * lease_);
  std::vector<std::unique_ptr<ShardLane>> lanes;
  for (const ShardId shard : AllShards()) {
    lanes.push_back(
        std::make_unique<ShardLane>(shard, process_, world_.queue, world_.network, retry,
                                    world_.scenario.run.seed + Value(identity_.incarnation)));
  }
  return lanes;
}

std::vector<ShardId> SimWorker::AllShards() const {
  std::vector<ShardId> all;
  for (uint32_t shard = 0; shard < map_->shards(); ++shard) all.push_back(ShardId{shard});
  return all;
}

std::span<float> SimWorker::Part(std::vector<float>& whole, ShardId shard) const {
  const ParameterRange range = map_->range(shard);
  return std::span(whole).subspan(range.begin, range.size());
}

void SimWorker::Initialize(uint64_t grant) {
  world_.trace.Line("worker {} initialises under grant {}", Value(identity_.worker), grant);
  weights_ = world_.gradients.InitialWeights();
  BeginLanes(lanes_.size(), [this, grant] { FinishInitialization(grant); });
  for (const ShardId shard : AllShards()) {
    const std::span<const float> part = Part(weights_, shard);
    lanes_[Value(shard)]->Initialize({identity_, grant, map_->fingerprint(), part.size()}, part,
                                     LaneDone(shard));
  }
}

void SimWorker::FinishInitialization(uint64_t grant) {
  v1::FinishInitializationRequest request;
  *request.mutable_identity() = ToWire(identity_);
  request.set_grant(grant);
  Call<v1::FinishInitializationReply>(
      Method::kFinishInitialization, request,
      [this](const absl::StatusOr<v1::FinishInitializationReply>& reply) {
        if (is_leaving_) return;
        if (!reply.ok()) return Fail(reply.status());
        PrepareModel();
      });
}

// Lanes.

void SimWorker::BeginLanes(size_t lanes, std::function<void()> done) {
  PS_CHECK(lanes_busy_ == 0);
  lanes_busy_ = lanes;
  lanes_done_ = std::move(done);
}

ShardLane::Done SimWorker::LaneDone(ShardId shard) {
  return [this, shard](const absl::StatusOr<ShardLane::Answer>& answer) {
    if (is_leaving_) return;
    if (!answer.ok()) return Fail(answer.status());
    answers_[Value(shard)] = *answer;
    if (const absl::Status judged = Judge(shard, *answer); !judged.ok()) return Fail(judged);
    if (--lanes_busy_ == 0) std::exchange(lanes_done_, nullptr)();
  };
}

absl::Status SimWorker::Judge(ShardId shard, const ShardLane::Answer& answer) const {
  if (!answer.push.has_value()) return absl::OkStatus();
  const bool is_final = slipstream::Judge(answer.push->outcome) == PushVerdict::kGiveUp;
  return is_final ? Refusal(shard, *answer.push) : absl::OkStatus();
}

void SimWorker::NoteReceived(ShardId shard, const WeightsHeader& header,
                             std::span<const float> weights) {
  world_.history.Add(
      WeightsReceived{shard, header.version, identity_,
                      std::make_shared<std::vector<float>>(weights.begin(), weights.end())});
}

// Training.

void SimWorker::Advance() {
  if (work_ends_) core_->OnWorkEnds();
  const WorkerCore::Action action = core_->Next();
  if (const auto* pull = std::get_if<WorkerCore::PullShards>(&action)) return Pull(*pull);
  if (const auto* excuse = std::get_if<WorkerCore::ExcuseShards>(&action)) {
    return Exchange(excuse->shards, {}, true, [this] { Advance(); });
  }
  if (const auto* release = std::get_if<WorkerCore::ReleaseShards>(&action)) {
    return Exchange(release->shards, {}, false, [this] { Advance(); });
  }
  if (const auto* compute = std::get_if<WorkerCore::ComputeBatch>(&action)) {
    return Compute(*compute);
  }
  if (std::holds_alternative<WorkerCore::AwaitUnit>(action)) {
    is_awaiting_unit_ = true;
    AskUnit();
    return TakeUnit();
  }
  world_.trace.Line("worker {} has no work left", Value(identity_.worker));
  progress_ = core_->progress();
  is_hurried_ = true;
  if (phase_ == Phase::kFinished) Leave(absl::OkStatus());
}

void SimWorker::Pull(const WorkerCore::PullShards& action) {
  BeginLanes(action.pulls.size(), [this, action] {
    for (const WorkerCore::ShardPull& pull : action.pulls) {
      const WeightsHeader& header = *answers_[Value(pull.shard)].weights;
      NoteReceived(pull.shard, header, Part(weights_, pull.shard));
      const absl::Status status = core_->OnWeights(pull.shard, header);
      if (!status.ok()) return Fail(status);
    }
    Advance();
  });
  for (const WorkerCore::ShardPull& pull : action.pulls) {
    const PullRequest request = {identity_, map_->fingerprint(), pull.min_version, true, 0};
    lanes_[Value(pull.shard)]->Pull(request, Part(weights_, pull.shard), LaneDone(pull.shard));
  }
}

void SimWorker::Compute(const WorkerCore::ComputeBatch& action) {
  gradient_ = world_.gradients.Compute(action.batch, weights_);
  const auto& times = world_.scenario.compute_time;
  const absl::Duration time = times[std::min<size_t>(Value(identity_.worker), times.size() - 1)];
  world_.network.AtProcess(process_, world_.queue.now() + chance_.Time(time / 2, time * 3 / 2),
                           [this] { Push(); });
}

void SimWorker::Push() {
  if (is_leaving_) return;
  if (core_->wants_unit()) AskUnit();
  TakeUnit();
  if (is_leaving_) return;
  // As ParameterClient asks again: a unit that came meanwhile may have changed the answer.
  const WorkerCore::Action action = core_->Next();
  const auto* compute = std::get_if<WorkerCore::ComputeBatch>(&action);
  PS_CHECK(compute != nullptr && compute->batch == gradient_.batch);
  Exchange(AllShards(), gradient_, compute->pull, [this] {
    if (IsRefusedByAll()) world_.gradients.Forget(gradient_);
    core_->OnBatchDone();
    progress_ = core_->progress();
    Advance();
  });
}

void SimWorker::Exchange(const std::vector<ShardId>& shards, const Gradients::Gradient& gradient,
                         bool pull, const std::function<void()>& done) {
  BeginLanes(shards.size(), [this, shards, done] { OnExchanged(shards, done); });
  for (const ShardId shard : shards) {
    PushHeader header;
    header.identity = identity_;
    header.sequence = core_->sequence(shard);
    header.shard_map = map_->fingerprint();
    header.base = core_->version(shard);
    header.examples = gradient.examples;
    header.batch = gradient.batch;
    header.pull = pull;
    PushMade made = {{shard, identity_.worker, identity_.incarnation, header.sequence},
                     std::nullopt,
                     header.base,
                     header.batch,
                     header.examples};
    std::span<const float> values;
    if (!gradient.values.empty()) {
      made.slot = gradient.slot;
      const ParameterRange range = map_->range(shard);
      values = std::span(gradient.values).subspan(range.begin, range.size());
    }
    world_.history.Add(made);
    lanes_[Value(shard)]->Exchange(header, values, Part(weights_, shard), LaneDone(shard));
  }
}

void SimWorker::OnExchanged(const std::vector<ShardId>& shards, const std::function<void()>& done) {
  for (const ShardId shard : shards) {
    const ShardLane::Answer& answer = answers_[Value(shard)];
    world_.history.Add(PushAnswered{
        {shard, identity_.worker, identity_.incarnation, core_->sequence(shard)}, *answer.push});
    absl::Status status = core_->OnReply(shard, *answer.push);
    if (status.ok() && answer.weights.has_value()) {
      NoteReceived(shard, *answer.weights, Part(weights_, shard));
      status = core_->OnWeights(shard, *answer.weights);
    }
    if (!status.ok()) return Fail(status);
  }
  done();
}

bool SimWorker::IsRefusedByAll() const {
  return std::ranges::all_of(
      answers_, [](const ShardLane::Answer& answer) { return IsRefusal(answer.push->outcome); });
}

// Units.

void SimWorker::AskUnit() {
  if (is_asking_ || unit_.has_value()) return;
  is_asking_ = true;
  FetchUnit();
}

void SimWorker::FetchUnit() {
  v1::GetWorkRequest request;
  *request.mutable_identity() = ToWire(identity_);
  for (const UnitProgress& unit : progress_) {
    v1::WorkProgress& progress = *request.add_progress();
    progress.set_unit(unit.id);
    progress.set_batches_done(unit.batches_done);
  }
  request.set_newest_unit(newest_unit_);
  request.set_wait_ms(kUnitWaitMs);
  Call<v1::GetWorkReply>(
      Method::kGetWork, request, [this](const absl::StatusOr<v1::GetWorkReply>& reply) {
        if (is_leaving_) return;
        if (!reply.ok()) return Fail(reply.status());
        if (reply->state() == v1::GetWorkReply::WAIT) return FetchUnit();
        is_asking_ = false;
        unit_.emplace();
        if (reply->state() == v1::GetWorkReply::UNIT) {
          newest_unit_ = reply->unit();
          unit_->emplace(WorkUnit{reply->unit(), reply->first_batch(), reply->batches()});
        }
        if (is_awaiting_unit_) TakeUnit();
      });
}

void SimWorker::TakeUnit() {
  if (!unit_.has_value()) return;
  const std::optional<WorkUnit> unit = *std::exchange(unit_, std::nullopt);
  if (unit.has_value()) {
    core_->OnUnit(*unit);
  } else {
    core_->OnNoMoreUnits();
  }
  progress_ = core_->progress();
  if (std::exchange(is_awaiting_unit_, false)) Advance();
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
  for (const auto& lane : lanes_) lane->Close();
  for (const auto& lane : reading_lanes_) lane->Close();
  world_.network.DropAllOf(process_);
  if (absl::IsFailedPrecondition(status)) return End(status);  // Fenced: gone already.
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
  text += fmt::format(" lanes busy {} asking {} awaiting {} hurried {} leaving {} reading {}",
                      lanes_busy_, is_asking_, is_awaiting_unit_, is_hurried_, is_leaving_,
                      reading_.has_value());
  return text;
}

}  // namespace slipstream
