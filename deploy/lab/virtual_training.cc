#include "deploy/lab/virtual_training.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "common/base/check.h"
#include "common/kernels/finite.h"
#include "deploy/lab/encoded_values.h"
#include "worker/member/session_options.h"

namespace slipstream {

VirtualTraining::VirtualTraining(const LabContext& lab, VirtualProcess& process,
                                 const Identity& identity, const ShardMap& map, OnEnd on_end)
    : SessionFlow(SessionOptionsFor(lab.run, identity, map), lab.run.worker.has_free_lanes(),
                  progress_),
      lab_(lab),
      process_(process),
      map_(map),
      on_end_(std::move(on_end)),
      units_(lab, process, identity, progress_,
             [this](const absl::Status& status) { OnNewsCame(status); }),
      slots_(lab.run.training.pipeline_depth),
      shards_(lab, process, identity.worker, [this](const absl::Status& status) { Fail(status); }),
      encoders_(lab.run.wire.push_codec, map, lab.run.training.pipeline_depth,
                PushEncoders::FrozenIn(lab.run, lab.layout, map)),
      nonfinite_(lab.run.training.nonfinite_max),
      clip_(lab.run.optimizer),
      worker_(identity.worker) {
  for (Slot& slot : slots_) slot.weights.resize(map.shards());
  if (lab.run.worker.has_free_lanes()) {
    newest_.emplace(
        lab, process, identity, map.fingerprint(), [this] { CheckWaiting(); },
        [this](const absl::Status& status) { Fail(status); });
  }
  if (!RowOf(lab.run.worker.algorithm).has_local_weights) return;
  local_ = std::make_unique<Local>(map.parameters());
  local_->steps = LocalSteps::Make(lab.run, lab.layout, lab.examples, local_->arenas);
}

VirtualTraining::~VirtualTraining() {
  if (job_ != nullptr) lab_.pool.Drop(*job_);
}

void VirtualTraining::OnOrders(bool work_ends, uint64_t steps) {
  work_ends_ |= work_ends;
  steps_ordered_ = steps;
}

// The loop.

void VirtualTraining::HeedOrders() {
  turn_began_ = process_.now();
  if (work_ends_) core().OnWorkEnds();
  if (steps_ordered_ > 0) core().OnSteps(steps_ordered_);
}

void VirtualTraining::Compute() { local_ == nullptr ? ComputeGradient() : BeginLocalSteps(); }

void VirtualTraining::Finish() {
  NoteProgress();
  figures_.OnDone(progress_, process_.now());
  on_end_(absl::OkStatus(), false);
}

void VirtualTraining::Fail(const absl::Status& status) { on_end_(status, false); }

// A gradient of one mini-batch.

void VirtualTraining::ComputeGradient() {
  Slot& slot = slots_[turn_];
  if (newest_.has_value()) {
    if (absl::Status taken = TakeNewest(turn_); !taken.ok()) return Fail(taken);
  }
  const uint64_t batch = batches().front().first;
  session_.BeginPush(turn_, {.batches = batches(), .examples = lab_.ExamplesOf(batch)});
  slot.step = BeginStep(batch);
  const auto gradient = std::make_shared<Gradient>();
  const absl::Time due = process_.now() + TimeOf(batch);
  job_ = lab_.pool.Start(due, [gradient, batch, weights = slot.weights, this](ComputeLane& lane) {
    gradient->computed = lane.Compute(weights, map_, batch);
    for (uint32_t i = 0; i < map_.shards(); ++i) {
      const ParameterRange range = map_.range(ShardId{i});
      gradient->parts.push_back(ReceivedValues::MakeBuffer(range.size()));
      std::ranges::copy(lane.gradient().subspan(range.begin, range.size()),
                        gradient->parts.back().to.begin());
    }
  });
  process_.At(due, [this, gradient] {
    lab_.pool.Await(*std::exchange(job_, nullptr));
    OnGradient(gradient);
  });
}

absl::Status VirtualTraining::TakeNewest(uint32_t slot) {
  const bool holds_any = std::exchange(calls_[slot].follows, true);
  for (const ShardId shard : session_.shards()) {
    std::optional<std::pair<Generation, Version>> held;
    if (holds_any) held.emplace(core().generation(shard, slot), core().version(shard, slot));
    const std::optional<VirtualNewest::Taken> taken = newest_->Take(shard, held);
    if (!taken.has_value()) continue;
    slots_[slot].weights[Value(shard)] = taken->weights;
    absl::Status heeded = session_.OnPulled(shard, slot, taken->header);
    if (!heeded.ok()) return heeded;
  }
  return absl::OkStatus();
}

void VirtualTraining::OnGradient(const std::shared_ptr<Gradient>& gradient) {
  Slot& slot = slots_[turn_];
  const ComputedGradient& computed = gradient->computed;
  if (!computed.step.ok()) return Fail(computed.step.status());
  slot.step.backward_end = process_.now();
  if (computed.nonfinite.has_value()) {
    session_.AbortPush(turn_);
    if (NoteNonfinite(batches().front().first, *computed.nonfinite)) LeaveOut();
    return;
  }
  Prefetch([this, gradient] {
    EndStep(gradient->computed, slots_[turn_].step);
    NoteHealthy();
    PushParts(gradient->parts,
              {.loss = gradient->computed.step->loss, .clip = gradient->computed.clip});
  });
}

// Local steps.

void VirtualTraining::BeginLocalSteps() {
  const auto begin = [this] {
    if (lands_apart()) {
      for (const ShardId shard : session_.TakeWithoutEffect()) {
        if (local_->steps->is_started()) local_->steps->OnRefused(map_.range(shard));
      }
      if (!local_->steps->is_started()) local_->steps->StartFromLanding();
    }
    local_->steps->Begin();
    local_->examples = 0;
    StepLocally(0);
  };
  if (!core().goes_on()) return begin();
  // The worker goes on from its own weights, and has to know first what became of its last push.
  Await([this] { return calls_[turn_].pushes == 0; },
        [this, begin] {
          Advance(turn_, [this, begin](const WorkerCore::Action& action) {
            IsWanted(action) ? begin() : OnTurn(action);
          });
        });
}

void VirtualTraining::StepLocally(uint64_t taken) {
  Slot& slot = slots_[turn_];
  if (taken == CountOf(batches())) return PushLocalSteps();
  const uint64_t batch = BatchAt(batches(), taken);
  slot.step = BeginStep(batch);
  const auto computed = std::make_shared<ComputedGradient>();
  const absl::Time due = process_.now() + TimeOf(batch);
  job_ = lab_.pool.Start(due, [this, computed, batch](ComputeLane& lane) {
    *computed = lane.ComputeLocally(local_->arenas.weights_host(), batch);
    std::ranges::copy(lane.gradient(), local_->arenas.gradients_host().begin());
  });
  process_.At(due, [this, computed, taken] {
    lab_.pool.Await(*std::exchange(job_, nullptr));
    OnLocalGradient(taken, *computed);
  });
}

void VirtualTraining::OnLocalGradient(uint64_t taken, const ComputedGradient& computed) {
  if (!computed.step.ok()) return Fail(computed.step.status());
  Slot& slot = slots_[turn_];
  slot.step.backward_end = process_.now();
  if (computed.nonfinite.has_value()) {
    if (!AllFinite({std::as_bytes(local_->arenas.weights_host())})) local_->steps->ForgetState();
    if (NoteNonfinite(BatchAt(batches(), taken), *computed.nonfinite)) StepLocally(taken + 1);
    return;
  }
  const bool is_last = taken + 1 == CountOf(batches());
  if (!keeps_weights() || !is_last) return TakeLocalStep(taken, computed);
  Land([this, taken, computed] { TakeLocalStep(taken, computed); });
}

void VirtualTraining::TakeLocalStep(uint64_t taken, const ComputedGradient& computed) {
  Slot& slot = slots_[turn_];
  slot.step.blocked += process_.now() - slot.step.backward_end;
  clip_.Clip(local_->arenas.gradients_host());
  local_->steps->OnGradient(BatchAt(batches(), taken));
  local_->loss = computed.step->loss;
  local_->examples += computed.examples;
  EndStep(computed, slot.step);
  turn_began_ = process_.now();
  StepLocally(taken + 1);
}

void VirtualTraining::Land(const std::function<void()>& then) {
  const std::vector<WorkerCore::ShardPull> pulls = core().PullsOfPush(turn_).pulls;
  if (!pulls.empty()) PullFrom(turn_, pulls);
  Advance(turn_, [this, then](const WorkerCore::Action& action) {
    if (!IsWanted(action)) return OnTurn(action);
    local_->steps->OnLanding();
    then();
  });
}

void VirtualTraining::PushLocalSteps() {
  LocalSteps& steps = *local_->steps;
  if (keeps_weights() && steps.steps() > 0 && !steps.has_landed()) {
    return Land([this] { PushLocalSteps(); });
  }
  std::vector<ReceivedValues::Buffer> parts;
  std::optional<std::string> nonfinite;
  for (const ShardId shard : session_.shards()) {
    if (steps.steps() == 0) break;
    const ParameterRange range = map_.range(shard);
    steps.BeforePush(range);
    parts.push_back(ReceivedValues::MakeBuffer(range.size()));
    std::ranges::copy(steps.outbox().subspan(range.begin, range.size()), parts.back().to.begin());
    if (!nonfinite) {
      nonfinite =
          NonfinitePart(local_->loss, parts.back().to, lab_.run.wire.push_codec, range.begin);
    }
  }
  if (nonfinite && !NoteNonfinite(EndOf(batches()) - 1, *nonfinite)) return;
  session_.BeginPush(turn_, {.batches = batches(), .examples = local_->examples});
  if (nonfinite || steps.steps() == 0) {
    if (nonfinite || lands_apart()) steps.ForgetState();
    session_.AbortPush(turn_);
    return LeaveOut();
  }
  const auto shared = std::make_shared<std::vector<ReceivedValues::Buffer>>(std::move(parts));
  Prefetch([this, shared] {
    NoteHealthy();
    PushParts(*shared, {.loss = local_->loss});
  });
}

// Steps.

StepFigures::Step VirtualTraining::BeginStep(uint64_t batch) {
  StepFigures::Step step;
  step.number = ++steps_begun_;
  step.batch = batch;
  step.turn = turn_began_;
  step.forward_begin = process_.now();
  step.forward_end = process_.now();
  step.blocked = step.forward_begin - step.turn;
  return step;
}

void VirtualTraining::EndStep(const ComputedGradient& computed, StepFigures::Step& step) {
  step.examples = computed.examples;
  step.correct = computed.step->correct;
  step.loss = computed.step->loss;
  figures_.OnStep(step);
}

absl::Duration VirtualTraining::TimeOf(uint64_t batch) {
  const absl::Duration time = lab_.times.Next(worker_, lab_.ExamplesOf(batch));
  return time + lab_.run.testing.SlowdownOf(worker_).ExtraTime(time);
}

bool VirtualTraining::NoteNonfinite(uint64_t batch, const std::string& what) {
  const absl::Status status = nonfinite_.OnNonfinite(batch, what);
  figures_.OnNonfinite(nonfinite_.count());
  // If the weights give one worker no finite values, they give them to none.
  if (!status.ok()) on_end_(status, true);
  return status.ok();
}

void VirtualTraining::NoteHealthy() {
  if (nonfinite_.count().in_a_row == 0) return;
  nonfinite_.OnHealthy();
  figures_.OnNonfinite(nonfinite_.count());
}

void VirtualTraining::LeaveOut() {
  Await([this] { return session_.are_answered(); },
        [this] {
          core().OnBatchesSkipped(turn_);
          NoteProgress();
          NextTurn();
        });
}

// Calls.

void VirtualTraining::PushParts(std::vector<ReceivedValues::Buffer>& parts,
                                const PushTrailer& trailer) {
  const uint32_t slot = turn_;
  session_.SendTo(slot, session_.unsent(slot));
  slots_[slot].lanes.assign(map_.shards(), LaneTimes());
  for (const ShardId shard : session_.shards()) {
    ++calls_[slot].pushes;
    ReceivedValues::Buffer& part = parts[Value(shard)];
    const uint64_t count = part.to.size();
    const auto header = [this, shard, slot, count, trailer] {
      PushHeader made = session_.BeginExchange(shard, slot);
      made.count = count;
      made.trailer = trailer;
      made.holds_base = local_ == nullptr || lands_apart();
      return made;
    };
    shards_.Push(
        shard, header, PayloadOf(shard, std::move(part)),
        [this, shard, slot](const PushHeader& sent, const Answer& answer, const LaneTimes& times) {
          OnAnswer(shard, slot, /*is_push=*/true, sent, answer, times);
        });
  }
  NextTurn();
}

VirtualCalls::Payload VirtualTraining::PayloadOf(ShardId shard, ReceivedValues::Buffer part) {
  PushEncoder* encoder = encoders_.Of(shard, turn_);
  if (encoder == nullptr) {
    const uint64_t bytes = part.to.size_bytes();
    return {std::make_shared<ReceivedValues>(std::move(part.values)), bytes};
  }
  auto values = std::make_shared<ReceivedValues>(EncodedValues(*encoder, part.to));
  const uint64_t bytes = values->message_bytes();
  return {std::move(values), bytes};
}

void VirtualTraining::PullFrom(uint32_t slot, const std::vector<WorkerCore::ShardPull>& pulls) {
  for (const WorkerCore::ShardPull& pull : pulls) {
    ++calls_[slot].others;
    shards_.Pull(
        pull.shard, [this, slot, pull] { return session_.PullFor(pull, slot); },
        [this, slot, shard = pull.shard](const PullRequest&, const Answer& answer) {
          TakeWeights(shard, slot, answer);
          const absl::Status heeded = session_.OnPulled(shard, slot, *answer.header);
          if (!heeded.ok()) return Fail(heeded);
          session_.OnExchangeOver(shard, true);
          --calls_[slot].others;
          CheckWaiting();
        });
  }
}

void VirtualTraining::PushNothing(uint32_t slot, const std::vector<ShardId>& shards, bool pull) {
  for (const ShardId shard : shards) {
    ++calls_[slot].others;
    shards_.Push(
        shard, [this, shard, slot, pull] { return session_.BeginExcuse(shard, slot, pull); }, {},
        [this, shard, slot](const PushHeader& sent, const Answer& answer, const LaneTimes& times) {
          OnAnswer(shard, slot, /*is_push=*/false, sent, answer, times);
        });
  }
}

void VirtualTraining::OnAnswer(ShardId shard, uint32_t slot, bool is_push, const PushHeader& header,
                               const Answer& answer, const LaneTimes& times) {
  Slot& of = slots_[slot];
  PushEncoder* encoder = is_push ? encoders_.Of(shard, slot) : nullptr;
  if (encoder != nullptr) encoder->OnOutcome(*answer.push, header.trailer.clip);
  const absl::StatusOr<bool> revokes = session_.OnAnswer(shard, {*answer.push, answer.header});
  if (!revokes.ok()) return Fail(revokes.status());
  PS_CHECK(!*revokes);  // A virtual shard never begins another generation.
  if (answer.header.has_value()) TakeWeights(shard, slot, answer);
  session_.OnExchangeOver(shard, true);
  Calls& calls = calls_[slot];
  --(is_push ? calls.pushes : calls.others);
  if (is_push) {
    of.lanes[Value(shard)] = times;
    if (calls.pushes == 0) figures_.OnTransfer({of.step.number, of.lanes});
    NoteProgress();
    figures_.OnSplitPushes(core().split_pushes());
  }
  CheckWaiting();
}

void VirtualTraining::TakeWeights(ShardId shard, uint32_t slot, const Answer& answer) {
  if (answer.weights == nullptr) return;  // The slot has them.
  if (local_ == nullptr) {
    slots_[slot].weights[Value(shard)] = answer.weights;
    return;
  }
  const std::span<float> to =
      lands_apart() ? local_->steps->landing() : local_->arenas.weights_host();
  std::ranges::copy(answer.weights->values(), to.begin() + map_.range(shard).begin);
}

}  // namespace slipstream
