#include "tests/simulation/sim_training.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>
#include <variant>

#include "worker/member/session_options.h"

namespace slipstream {
namespace {

constexpr uint64_t kStreams = 10'000;  // The first of the seed's streams, one per process.

}  // namespace

SimTraining::SimTraining(const SimWorld& world, const std::shared_ptr<Process>& process,
                         const WorkerShards& shards, CoordinatorCalls& calls,
                         const SimHeartbeat& heartbeat, uint64_t number,
                         std::vector<UnitProgress>& progress,
                         std::function<void(const absl::Status&)> on_end)
    : SessionFlow(SessionOptionsFor(world.scenario.run, shards.identity(), shards.map()),
                  world.scenario.run.worker.has_free_lanes(), progress),
      world_(world),
      process_(process),
      shards_(shards),
      heartbeat_(heartbeat),
      on_end_(std::move(on_end)),
      chance_(world.scenario.seed, kStreams + number),
      units_(world, calls, shards.identity(), progress,
             [this](const absl::Status& status) { OnNewsCame(status); }),
      slots_(world.scenario.run.training.pipeline_depth),
      encoders_(world.scenario.run.wire.push_codec, shards.map(),
                world.scenario.run.training.pipeline_depth),
      fragments_(world.scenario.run.worker.fragments(),
                 static_cast<uint64_t>(world.scenario.run.worker.parameters["fragment_delay"])),
      lanes_(shards.MakeLanes()),
      pushed_(shards.map().shards()),
      is_heard_(shards.map().shards()) {
  for (Slot& slot : slots_) slot.weights.resize(shards.map().parameters());
  if (world.scenario.run.worker.has_free_lanes()) {
    newest_.emplace(world, process, shards, [this](const absl::Status& pulled) {
      pulled.ok() ? CheckWaiting() : Fail(pulled);
    });
  }
}

void SimTraining::Close() {
  StopFlow();
  lanes_.Close();
  if (newest_.has_value()) newest_->Close();
}

void SimTraining::Initialize(uint64_t grant, std::function<void(const absl::Status&)> done) {
  slots_.front().weights = world_.gradients.InitialWeights();
  const auto first_failure = std::make_shared<absl::Status>();
  for (const ShardId shard : shards_.all()) {
    const auto begin = [this, shard, grant](ShardLane& lane, ShardLane::Done lane_done) {
      lane.Initialize(session_.InitializeFor(grant), shards_.Part(slots_.front().weights, shard),
                      std::move(lane_done));
    };
    ++calls_.front().others;
    lanes_.Call(shard, begin, [this, first_failure](const auto& result) {
      first_failure->Update(result.status());
      --calls_.front().others;
      CheckWaiting();
    });
  }
  Await([this] { return calls_.front().others == 0; },
        [first_failure, done = std::move(done)] { done(*first_failure); });
}

// The loop.

void SimTraining::HeedOrders() {
  if (heartbeat_.news().work_ends) core().OnWorkEnds();
  if (heartbeat_.news().steps > 0) core().OnSteps(heartbeat_.news().steps);
}

void SimTraining::AwaitPushes(uint32_t slot, std::function<void()> then) {
  Await([this, slot] { return calls_[slot].pushes == 0; }, std::move(then));
}

void SimTraining::Compute() {
  if (newest_.has_value()) {
    world_.history.Add(BatchBegun{shards_.identity(), turn_, newest_->versions()});
    if (absl::Status taken = TakeNewest(turn_); !taken.ok()) return Fail(taken);
  }
  // A worker with local steps begins the push once it has taken them.
  if (!takes_local_steps()) BeginPush();
  AwaitPushes(turn_, [this] {
    Slot& slot = slots_[turn_];
    const bool is_revoked = std::exchange(slot.is_revoked, false);
    if (!takes_local_steps()) {
      if (!is_revoked) return ComputeFromWeights();
      session_.AbortPush(turn_);
      return TakeTurn();
    }
    // Weights that came meanwhile may have ended the round.
    Advance(turn_, [this](const WorkerCore::Action& action) {
      IsWanted(action) ? ComputeFromWeights() : OnTurn(action);
    });
  });
}

void SimTraining::ComputeFromWeights() {
  Slot& slot = slots_[turn_];
  if (!keeps_weights()) slot.gradient = world_.gradients.Compute(batches(), slot.weights);
  if (fragments_.count() > 1) return StepOn(0);
  const auto steps = static_cast<int64_t>(CountOf(batches()));
  const absl::Duration time = steps * world_.scenario.ComputeTimeOf(shards_.identity().worker);
  world_.network.AtProcess(process_, world_.queue.now() + chance_.Time(time / 2, time * 3 / 2),
                           [this] { keeps_weights() ? Land() : Push(); });
}

void SimTraining::BeginPush() {
  uint32_t examples = 0;
  ForEachBatch(batches(), [&](uint64_t batch) { examples += world_.scenario.ExamplesOf(batch); });
  slots_[turn_].is_refused = true;
  session_.BeginPush(turn_, {.batches = batches(), .examples = examples});
}

absl::Status SimTraining::TakeNewest(uint32_t slot) {
  const bool holds_any = std::exchange(calls_[slot].follows, true);
  for (const ShardId shard : shards_.all()) {
    std::optional<GenerationVersion> held;
    if (holds_any) held = {core().generation(shard, slot), core().version(shard, slot)};
    const std::optional<WeightsHeader> taken = newest_->Take(shard, held, slots_[slot].weights);
    if (!taken.has_value()) continue;
    if (absl::Status status = session_.OnPulled(shard, slot, *taken); !status.ok()) return status;
  }
  return absl::OkStatus();
}

void SimTraining::StepOn(uint64_t taken) {
  if (is_stopped()) return;
  const uint64_t steps = CountOf(batches());
  if (taken == steps) return AwaitPushes(turn_, [this] { Push(); });
  const absl::Duration time = world_.scenario.ComputeTimeOf(shards_.identity().worker);
  const auto next = [this, taken = taken + 1, steps] {
    const std::vector<ShardId> leaving =
        fragments_.LeavingAfter(taken, steps, session_.unsent(turn_));
    // A worker has nothing to push before the first step that gave finite values.
    const bool has_nothing = world_.scenario.has_nonfinite_steps && chance_.Happens(200);
    if (leaving.empty() || has_nothing) return StepOn(taken);
    AwaitPushes(turn_, [this, leaving, taken] { PushFragment(leaving, taken); });
  };
  world_.network.AtProcess(process_, world_.queue.now() + chance_.Time(time / 2, time * 3 / 2),
                           next);
}

void SimTraining::PushFragment(const std::vector<ShardId>& shards, uint64_t taken) {
  if (is_stopped()) return;
  if (!session_.is_sending(turn_)) BeginPush();
  PushGradient(turn_, shards);
  if (fragments_.delay() > 0) return StepOn(taken);
  AwaitPushes(turn_, [this, taken] { StepOn(taken); });
}

void SimTraining::Land() {
  if (is_stopped()) return;
  const std::vector<WorkerCore::ShardPull> pulls = core().PullsOfPush(turn_).pulls;
  if (!pulls.empty()) PullFrom(turn_, pulls);
  Advance(turn_, [this](const WorkerCore::Action& action) {
    if (!IsWanted(action)) return OnTurn(action);
    Slot& slot = slots_[turn_];
    slot.gradient = world_.gradients.Compute(batches(), slot.weights);
    Push();
  });
}

void SimTraining::Push() {
  if (is_stopped()) return;
  if (takes_local_steps() && !session_.is_sending(turn_)) BeginPush();
  Prefetch([this] {
    PushGradient(turn_, session_.unsent(turn_));
    NextTurn();
  });
}

void SimTraining::Finish() {
  NoteProgress();
  on_end_(absl::OkStatus());
}

// Requests of the loop to the lanes.

void SimTraining::PullFrom(uint32_t slot, const std::vector<WorkerCore::ShardPull>& pulls) {
  for (const WorkerCore::ShardPull& pull : pulls) {
    const auto begin = [this, slot, pull](ShardLane& lane, ShardLane::Done done) {
      const PullRequest request = session_.PullFor(pull, slot);
      world_.history.Add(
          PullMade{pull.shard, shards_.identity(), request.min_generation, request.sequence});
      lane.Pull(request, shards_.Part(slots_[slot].weights, pull.shard), std::move(done));
    };
    Call(pull.shard, calls_[slot].others, begin, [this, slot, pull](const WeightsHeader& header) {
      shards_.NoteReceived(pull.shard, header, slots_[slot].weights);
      return session_.OnPulled(pull.shard, slot, header);
    });
  }
}

void SimTraining::PushGradient(uint32_t slot, const std::vector<ShardId>& shards) {
  const std::set<ShardId> sent(shards.begin(), shards.end());  // `shards` may be the unsent ones.
  session_.SendTo(slot, shards);
  for (const ShardId shard : sent) {
    const auto begin = [this, slot, shard](ShardLane& lane, ShardLane::Done done) {
      Exchange(lane, shard, slot, session_.BeginExchange(shard, slot), &slots_[slot].gradient,
               std::move(done));
    };
    Call(shard, calls_[slot].pushes, begin, [this, slot, shard](const WeightsHeader& header) {
      shards_.NoteReceived(shard, header, slots_[slot].weights);
      return absl::OkStatus();
    });
  }
}

void SimTraining::PushNothing(uint32_t slot, const std::vector<ShardId>& shards, bool pull) {
  for (const ShardId shard : shards) {
    const auto begin = [this, slot, shard, pull](ShardLane& lane, ShardLane::Done done) {
      Exchange(lane, shard, slot, session_.BeginExcuse(shard, slot, pull), nullptr,
               std::move(done));
    };
    Call(shard, calls_[slot].others, begin, [this, slot, shard](const WeightsHeader& header) {
      shards_.NoteReceived(shard, header, slots_[slot].weights);
      return absl::OkStatus();
    });
  }
}

void SimTraining::Exchange(ShardLane& lane, ShardId shard, uint32_t slot, const PushHeader& header,
                           const Gradients::Gradient* gradient, ShardLane::Done done) {
  pushed_[Value(shard)] = KeyOf(shard, header);
  is_heard_[Value(shard)] = false;
  world_.history.Add(PushMade{KeyOf(shard, header),
                              gradient == nullptr ? std::nullopt : std::optional(gradient->slot),
                              header.base, header.batches, header.examples, header.slot});
  const bool is_push = gradient != nullptr;
  const auto on_answer = [this, shard, slot, is_push](const ExchangeAnswer& answer) {
    return OnAnswer(shard, slot, is_push, answer);
  };
  const std::span<float> weights = shards_.Part(slots_[slot].weights, shard);
  const std::span<const float> values =
      is_push ? shards_.Part(gradient->values, shard) : std::span<const float>();
  lane.Exchange(header, values, is_push ? encoders_.Of(shard, slot) : nullptr, weights,
                /*holds_base=*/is_push && !takes_local_steps(), on_answer, std::move(done));
}

absl::Status SimTraining::OnAnswer(ShardId shard, uint32_t slot, bool is_push,
                                   const ExchangeAnswer& answer) {
  const PushKey& key = pushed_[Value(shard)];
  Slot& of = slots_[slot];
  if (!is_heard_[Value(shard)]) {
    is_heard_[Value(shard)] = true;
    world_.history.Add(PushAnswered{key, answer.push});
    // A push of an older generation may have counted before, and then its position is taken.
    const bool may_count =
        !IsRefusal(answer.push.outcome) || key.generation < answer.push.generation;
    if (is_push && may_count) of.is_refused = false;
  }
  const bool was_answered = session_.is_answered(slot);
  const absl::StatusOr<bool> revokes = session_.OnAnswer(shard, answer);
  if (!revokes.ok()) return revokes.status();
  of.is_revoked |= *revokes;
  if (!was_answered && session_.is_answered(slot)) {
    if (of.is_refused) world_.gradients.Forget(of.gradient);
    NoteProgress();
  }
  CheckWaiting();
  return absl::OkStatus();
}

void SimTraining::Call(ShardId shard, size_t& under_way, SimLanes::Begin begin,
                       std::function<absl::Status(const WeightsHeader&)> on_weights) {
  ++under_way;
  lanes_.Call(shard, std::move(begin),
              [this, shard, &under_way, on_weights = std::move(on_weights)](
                  const absl::StatusOr<std::optional<WeightsHeader>>& weights) {
                absl::Status status = weights.status();
                if (status.ok() && weights->has_value()) status = on_weights(**weights);
                if (!status.ok()) return Fail(status);
                session_.OnExchangeOver(shard, true);
                --under_way;
                CheckWaiting();
              });
}

std::string SimTraining::Describe() const {
  std::string text =
      fmt::format("turn {} asking {} awaiting {}", turn_, units_.is_asking(), is_awaiting_unit());
  for (const Calls& calls : calls_)
    text += fmt::format(" calls {} pushes {}", calls.others, calls.pushes);
  return text;
}

}  // namespace slipstream
