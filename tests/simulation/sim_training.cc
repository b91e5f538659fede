#include "tests/simulation/sim_training.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <variant>

namespace slipstream {
namespace {

constexpr uint64_t kStreams = 10'000;  // The first of the seed's streams, one per process.

}  // namespace

SimTraining::SimTraining(const SimWorld& world, const std::shared_ptr<Process>& process,
                         const WorkerShards& shards, CoordinatorCalls& calls,
                         const SimHeartbeat& heartbeat, uint64_t number,
                         std::vector<UnitProgress>& progress,
                         std::function<void(const absl::Status&)> on_end)
    : world_(world),
      process_(process),
      shards_(shards),
      heartbeat_(heartbeat),
      progress_(progress),
      on_end_(std::move(on_end)),
      chance_(world.scenario.seed, kStreams + number),
      units_(calls, shards.identity(), progress,
             [this](const absl::Status& status) { OnUnitResult(status); }),
      core_({.shards = shards.map().shards(),
             .in_step = world.scenario.PolicyOf(0).traits().in_step,
             .depth = world.scenario.run.training.pipeline_depth,
             .quantum = world.scenario.run.worker.quantum(),
             .keeps_weights = RowOf(world.scenario.run.worker.algorithm).keeps_weights,
             .pushes_per_fetch = world.scenario.run.pushes_per_fetch(),
             .releases_unused = world.scenario.PolicyOf(0).traits().waits_for_members}),
      slots_(world.scenario.run.training.pipeline_depth),
      encoders_(world.scenario.run.wire.push_codec, shards.map(),
                world.scenario.run.training.pipeline_depth),
      fragments_(world.scenario.run.worker.fragments(),
                 static_cast<uint64_t>(world.scenario.run.worker.parameters["fragment_delay"])),
      lanes_(shards.MakeLanes()),
      pushed_(shards.map().shards()) {
  for (Slot& slot : slots_) slot.weights.resize(shards.map().parameters());
  if (world.scenario.run.worker.has_free_lanes()) newest_.emplace(world, process, shards, on_end_);
}

void SimTraining::Close() {
  is_closed_ = true;
  lanes_.Close();
  if (newest_.has_value()) newest_->Close();
}

void SimTraining::Initialize(uint64_t grant, std::function<void()> done) {
  Slot& slot = slots_.front();
  slot.weights = world_.gradients.InitialWeights();
  slot.then = std::move(done);
  for (const ShardId shard : shards_.all()) {
    const auto begin = [this, shard, grant](ShardLane& lane, ShardLane::Done lane_done) {
      const std::span<const float> part = shards_.Part(slots_.front().weights, shard);
      const uint64_t map = shards_.map().fingerprint();
      lane.Initialize({shards_.identity(), grant, map, part.size()}, part, std::move(lane_done));
    };
    Call(shard, 0, begin, [](const ShardLane::Answer&) { return absl::OkStatus(); });
  }
}

// The loop, like TrainingLoop's.

void SimTraining::TakeTurn() {
  if (heartbeat_.work_ends()) core_.OnWorkEnds();
  if (heartbeat_.steps() > 0) core_.OnSteps(heartbeat_.steps());
  Settle(turn_, [this](const WorkerCore::Action& action) { OnTurn(action); });
}

void SimTraining::OnTurn(const WorkerCore::Action& action) {
  if (const auto* compute = std::get_if<WorkerCore::ComputeBatches>(&action)) {
    return Compute(compute->batches);
  }
  const bool has_to_wait = std::holds_alternative<WorkerCore::AwaitUnit>(action);
  if (newest_.has_value()) {
    newest_->Rest();
    if (has_to_wait) core_.OnWait();
  }
  if (has_to_wait) return AwaitUnit(0);
  slots_[turn_].is_finished = true;
  if (std::ranges::all_of(slots_, [](const Slot& slot) { return slot.is_finished; })) {
    return MayGoOn() ? AwaitUnit(0) : Finish();
  }
  turn_ = (turn_ + 1) % slots_.size();
  TakeTurn();
}

void SimTraining::Settle(uint32_t slot,
                         const std::function<void(const WorkerCore::Action&)>& then) {
  if (slots_[slot].unanswered > 0) {
    slots_[slot].then = [this, slot, then] { Settle(slot, then); };
    return;
  }
  const WorkerCore::Action action = core_.Next(slot);
  if (const auto* pull = std::get_if<WorkerCore::PullShards>(&action)) {
    PullFrom(slot, pull->pulls);
  } else if (const auto* excuse = std::get_if<WorkerCore::ExcuseShards>(&action)) {
    PushNothing(slot, excuse->shards, true);
  } else if (const auto* release = std::get_if<WorkerCore::ReleaseShards>(&action)) {
    PushNothing(slot, release->shards, false);
  } else {
    return then(action);
  }
  Settle(slot, then);
}

void SimTraining::AwaitUnit(uint32_t settled) {
  // The pushes in flight may be all the work that is left, so the coordinator has to hear that they
  // are done.
  if (settled < slots_.size()) {
    return Settle(settled, [this, settled](const auto&) { AwaitUnit(settled + 1); });
  }
  is_awaiting_unit_ = true;
  units_.Ask(core_.newest_life());
  TakeUnit();
}

void SimTraining::OnUnitResult(const absl::Status& status) {
  if (!status.ok()) return on_end_(status);
  if (is_awaiting_unit_) TakeUnit();
}

void SimTraining::TakeUnit() {
  const std::optional<SimUnits::Result> result = units_.Take();
  if (!result.has_value()) return;
  if (const auto* unit = std::get_if<WorkUnit>(&*result)) {
    core_.OnUnit(*unit);
  } else if (const auto* stage = std::get_if<SimUnits::NextStage>(&*result)) {
    EnterStage(*stage);
  } else if (const auto* returned = std::get_if<SimUnits::Returned>(&*result)) {
    core_.OnReturned(returned->life);
  } else {
    has_no_more_units_ = true;
    core_.OnNoMoreUnits();
  }
  progress_ = core_.progress();
  if (std::exchange(is_awaiting_unit_, false)) TakeTurn();
}

void SimTraining::EnterStage(const SimUnits::NextStage& next) {
  const PolicyTraits traits = world_.scenario.PolicyOf(next.number).traits();
  const bool goes_on = next.since <= stage_;
  core_.EnterStage({.number = next.number,
                    .since = next.since,
                    .in_step = traits.in_step,
                    .releases_unused = traits.waits_for_members});
  stage_ = next.number;
  if (goes_on) return;
  for (Slot& slot : slots_) slot.is_finished = false;
}

void SimTraining::Compute(const BatchRanges& batches) {
  Slot& slot = slots_[turn_];
  if (newest_.has_value()) {
    if (absl::Status taken = TakeNewest(turn_); !taken.ok()) return on_end_(taken);
  }
  // A worker with local steps begins the push once it has taken them.
  if (!takes_local_steps()) core_.OnBatchesBegun(batches, turn_);
  slot.batches = batches;
  slot.unsent = shards_.all();
  if (!keeps_weights()) slot.gradient = world_.gradients.Compute(batches, slot.weights);
  if (fragments_.count() > 1) return StepOn(0);
  const auto steps = static_cast<int64_t>(CountOf(batches));
  const absl::Duration time = steps * world_.scenario.ComputeTimeOf(shards_.identity().worker);
  world_.network.AtProcess(process_, world_.queue.now() + chance_.Time(time / 2, time * 3 / 2),
                           [this] { return keeps_weights() ? Land([this] { Push(); }) : Push(); });
}

absl::Status SimTraining::TakeNewest(uint32_t slot) {
  world_.history.Add(BatchBegun{shards_.identity(), slot, newest_->versions()});
  for (const ShardId shard : shards_.all()) {
    const std::optional<WeightsHeader> taken = newest_->Take(
        shard, {core_.life(shard, slot), core_.version(shard, slot)}, slots_[slot].weights);
    if (!taken.has_value()) continue;
    if (absl::Status status = core_.OnWeights(shard, *taken, slot); !status.ok()) return status;
  }
  return absl::OkStatus();
}

void SimTraining::StepOn(uint64_t taken) {
  if (is_closed_) return;
  Slot& slot = slots_[turn_];
  const uint64_t steps = CountOf(slot.batches);
  if (taken == steps) return AfterAnswers([this] { Push(); });
  const absl::Duration time = world_.scenario.ComputeTimeOf(shards_.identity().worker);
  const auto next = [this, taken = taken + 1, steps] {
    const std::vector<ShardId> leaving =
        fragments_.LeavingAfter(taken, steps, slots_[turn_].unsent);
    // A worker has nothing to push before the first step that gave finite values.
    const bool has_nothing = world_.scenario.has_nonfinite_steps && chance_.Happens(200);
    if (leaving.empty() || has_nothing) return StepOn(taken);
    AfterAnswers([this, leaving, taken] { PushFragment(leaving, taken); });
  };
  world_.network.AtProcess(process_, world_.queue.now() + chance_.Time(time / 2, time * 3 / 2),
                           next);
}

void SimTraining::PushFragment(const std::vector<ShardId>& shards, uint64_t taken) {
  if (is_closed_) return;
  Slot& slot = slots_[turn_];
  const bool is_first = slot.unsent.size() == shards_.all().size();
  if (is_first) core_.OnBatchesBegun(slot.batches, turn_);
  PushGradient(turn_, shards);
  if (fragments_.delay() > 0) return StepOn(taken);
  AfterAnswers([this, taken] { StepOn(taken); });
}

void SimTraining::AfterAnswers(const std::function<void()>& then) {
  if (slots_[turn_].unanswered == 0) return then();
  slots_[turn_].then = then;
}

void SimTraining::Land(const std::function<void()>& then) {
  if (is_closed_) return;
  const auto on_landed = [this, then] {
    Slot& slot = slots_[turn_];
    const WorkerCore::Action action = core_.Next(turn_);
    const auto* compute = std::get_if<WorkerCore::ComputeBatches>(&action);
    if (compute == nullptr || compute->batches != slot.batches) return TakeTurn();
    slot.gradient = world_.gradients.Compute(slot.batches, slot.weights);
    then();
  };
  const std::vector<WorkerCore::ShardPull> pulls = core_.PullsOfPush(turn_).pulls;
  if (pulls.empty()) return on_landed();
  PullFrom(turn_, pulls);
  slots_[turn_].then = on_landed;
}

void SimTraining::Push() {
  if (is_closed_) return;
  const std::vector<ShardId> rest = slots_[turn_].unsent;
  const bool is_first = rest.size() == shards_.all().size();
  if (takes_local_steps() && is_first) core_.OnBatchesBegun(slots_[turn_].batches, turn_);
  if (core_.wants_unit()) units_.Ask(core_.newest_life());
  TakeUnit();
  PushGradient(turn_, rest);
  turn_ = (turn_ + 1) % slots_.size();
  TakeTurn();
}

void SimTraining::Finish() {
  progress_ = core_.progress();
  on_end_(absl::OkStatus());
}

// Requests of the loop to the lanes, like ParameterClient's.

void SimTraining::PullFrom(uint32_t slot, const std::vector<WorkerCore::ShardPull>& pulls) {
  for (const WorkerCore::ShardPull& pull : pulls) {
    const ShardId shard = pull.shard;
    const auto begin = [this, slot, shard, pull](ShardLane& lane, ShardLane::Done done) {
      const PullRequest request = {.identity = shards_.identity(),
                                   .shard_map = shards_.map().fingerprint(),
                                   .min_version = pull.min_version,
                                   .min_life = pull.min_life,
                                   .trains = true,
                                   .sequence = core_.sequence(shard),
                                   .slot = slot,
                                   .clock = core_.ClockOfPull(shard)};
      lane.Pull(request, shards_.Part(slots_[slot].weights, shard), std::move(done));
    };
    const auto take = [this, slot, shard](const ShardLane::Answer& answer) {
      return TakeWeights(shard, slot, *answer.weights);
    };
    Call(shard, slot, begin, take);
  }
}

void SimTraining::PushGradient(uint32_t slot, const std::vector<ShardId>& shards) {
  std::vector<ShardId>& unsent = slots_[slot].unsent;
  if (unsent.size() == shards_.all().size()) slots_[slot].is_refused = true;
  std::erase_if(unsent, [&](ShardId shard) { return std::ranges::count(shards, shard) > 0; });
  slots_[slot].is_pushing = unsent.empty();
  for (const ShardId shard : shards) {
    const auto begin = [this, slot, shard](ShardLane& lane, ShardLane::Done done) {
      const Gradients::Gradient& gradient = slots_[slot].gradient;
      const PushHeader header = Header(shard, slot, gradient);
      NotePush(shard, header, gradient.slot);
      lane.Exchange(header, shards_.Part(gradient.values, shard), encoders_.Of(shard, slot),
                    shards_.Part(slots_[slot].weights, shard), std::move(done));
    };
    const auto take = [this, slot, shard](const ShardLane::Answer& answer) {
      // A push of an older life may have counted before, and then its position is taken.
      const bool is_of_older_life = pushed_[Value(shard)].life < answer.push->life;
      if (!IsRefusal(answer.push->outcome) || is_of_older_life) slots_[slot].is_refused = false;
      return TakeReply(shard, slot, answer);
    };
    Call(shard, slot, begin, take);
  }
}

void SimTraining::PushNothing(uint32_t slot, const std::vector<ShardId>& shards, bool pull) {
  for (const ShardId shard : shards) {
    const auto begin = [this, slot, shard, pull](ShardLane& lane, ShardLane::Done done) {
      const PushHeader header = Header(shard, slot, {}, pull);
      NotePush(shard, header, std::nullopt);
      lane.Exchange(header, {}, nullptr, shards_.Part(slots_[slot].weights, shard),
                    std::move(done));
    };
    const auto take = [this, slot, shard](const ShardLane::Answer& answer) {
      return TakeReply(shard, slot, answer);
    };
    Call(shard, slot, begin, take);
  }
}

PushHeader SimTraining::Header(ShardId shard, uint32_t slot, const Gradients::Gradient& gradient,
                               std::optional<bool> pull) {
  PushHeader header;
  header.identity = shards_.identity();
  header.shard_map = shards_.map().fingerprint();
  header.base = core_.version(shard, slot);
  header.life = core_.life(shard, slot);
  header.sequence = core_.sequence(shard, header.life);
  header.kind = RowOf(world_.scenario.run.worker.algorithm).pushes;
  header.examples = gradient.examples;
  header.batches = gradient.batches;
  header.slot = slot;
  const WorkerCore::PushTerms terms = core_.TermsOfPush(shard, slot, pull);
  header.pull = terms.pull;
  header.clock = terms.clock;
  header.rests = terms.rests;
  header.leaves_out = terms.leaves_out;
  return header;
}

void SimTraining::NotePush(ShardId shard, const PushHeader& header,
                           std::optional<uint32_t> gradient_slot) {
  pushed_[Value(shard)] = KeyOf(shard, header);
  world_.history.Add(PushMade{KeyOf(shard, header), gradient_slot, header.base, header.batches,
                              header.examples, header.slot});
}

absl::Status SimTraining::TakeReply(ShardId shard, uint32_t slot, const ShardLane::Answer& answer) {
  world_.history.Add(PushAnswered{pushed_[Value(shard)], *answer.push});
  absl::Status status = core_.OnReply(shard, *answer.push, slot);
  if (status.ok() && answer.repeated.has_value()) {
    status = core_.OnRepeatedReply(shard, *answer.repeated, slot);
  }
  if (!status.ok() || !answer.weights.has_value()) return status;
  return TakeWeights(shard, slot, *answer.weights);
}

absl::Status SimTraining::TakeWeights(ShardId shard, uint32_t slot, const WeightsHeader& header) {
  shards_.NoteReceived(shard, header, slots_[slot].weights);
  return core_.OnWeights(shard, header, slot);
}

void SimTraining::Call(ShardId shard, uint32_t slot, SimLanes::Begin begin, Take take) {
  ++slots_[slot].unanswered;
  lanes_.Call(
      shard, std::move(begin),
      [this, slot, take = std::move(take)](const absl::StatusOr<ShardLane::Answer>& answer) {
        const absl::Status status = answer.ok() ? take(*answer) : answer.status();
        if (!status.ok()) return on_end_(status);
        if (--slots_[slot].unanswered == 0) OnAnswered(slot);
      });
}

void SimTraining::OnAnswered(uint32_t slot) {
  Slot& answered = slots_[slot];
  if (std::exchange(answered.is_pushing, false)) {
    if (answered.is_refused) world_.gradients.Forget(answered.gradient);
    core_.OnBatchesDone(slot);
    progress_ = core_.progress();
  }
  if (answered.then != nullptr) std::exchange(answered.then, nullptr)();
}

std::string SimTraining::Describe() const {
  std::string text =
      fmt::format("turn {} asking {} awaiting {}", turn_, units_.is_asking(), is_awaiting_unit_);
  for (const Slot& slot : slots_) text += fmt::format(" unanswered {}", slot.unanswered);
  return text;
}

}  // namespace slipstream
