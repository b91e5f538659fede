#include "server/core/shard/call_answering.h"

#include <utility>
#include <vector>

namespace slipstream {

void CallAnswering::Answer(PendingCall call, ShardOutput& output) {
  SettlePace(call.condition);
  if (judge_.CanServe(call)) NoteTrainers(call, state_.versions.published());
  if (TryAnswer(call, output)) return;
  // The base version is fixed now: rounds that close before it is published add to its staleness.
  NoteTrainers(call, call.condition.version);
  state_.waiting.Add(std::move(call));
}

void CallAnswering::ServeWaiting(ShardOutput& output) {
  bool was_held_back = false;
  do {
    was_held_back = state_.reader_pace.HoldsBack(state_.versions.decided());
    // A call that is served may take the place that the next one waits for.
    state_.waiting.Serve(judge_.Reached(),
                         [&](PendingCall& call) { return TryAnswer(call, output); });
    // A reader that was served may have been the one that others, who came before it, wait for.
  } while (was_held_back && !state_.reader_pace.HoldsBack(state_.versions.decided()));
}

bool CallAnswering::TryAnswer(PendingCall& call, ShardOutput& output) {
  SettlePace(call.condition);
  if (call.exact.has_value() && judge_.IsGone(*call.exact)) {
    output.answers.push_back({.call = call.call, .refusal = PullRefusal::kLagged});
    return true;
  }
  if (!judge_.CanServe(call)) return false;
  output.answers.push_back(Served(std::move(call)));
  return true;
}

void CallAnswering::SettlePace(PullCondition& condition) const {
  state_.pace.Settle(condition, judge_.IsFree(), state_.versions.decided());
}

ShardAnswer CallAnswering::Served(PendingCall call) {
  const Version version = judge_.VersionFor(call);
  if (call.is_pull) BeginPull(call);
  state_.reader_pace.OnSent(call.awaited_reader, version);
  ShardAnswer answer = {.call = call.call, .push = std::move(call.push)};
  if (!call.wants_weights) return answer;
  answer.weights = {.version = version,
                    .count = state_.run.plan->count,
                    .work = std::nullopt,
                    .unchanged = !call.is_pull && call.held == version,
                    .generation = state_.versions.generation(),
                    .stage = state_.run.stage};
  answer.weights->parts.resize(call.parts);
  if (call.is_pull && call.trainers.empty()) {
    const VersionRecord& record = state_.versions.RecordOf(version);
    answer.weights->examples = record.examples;
    answer.weights->stamp = record.stamp;
    answer.weights->label = record.label;
    const bool is_base = call.held >= state_.versions.oldest() && call.held <= version;
    if (is_base) answer.weights->base = call.held;
  }
  for (const PendingCall::Trainer& trainer : call.trainers) {
    const PartAnswer told = ServeTrainer(trainer, answer);
    if (call.parts > 0) {
      answer.weights->parts[trainer.part] = told;
    } else {
      answer.weights->work = told.work;
      answer.weights->clock = told.clock;
    }
  }
  return answer;
}

PartAnswer CallAnswering::ServeTrainer(const PendingCall::Trainer& trainer, ShardAnswer& answer) {
  PartAnswer told = {.work = WorkFor(trainer, answer.weights->version), .clock = {}};
  // A worker that has left meanwhile is still answered, but has no record any more.
  const bool is_member = state_.members.Find(trainer.worker, trainer.incarnation) != nullptr;
  if (is_member) told.clock = state_.members.At(trainer.worker).clock;
  const bool is_to_train = !told.work.has_value() || told.work->kind == RoundWork::Kind::kCompute;
  if (!is_to_train) return told;
  answer.trainers.push_back(trainer.worker);
  if (rules_.uses_base_weights() && is_member) {
    state_.members.Give(trainer.worker, trainer.slot, state_.versions.published());
  }
  return told;
}

void CallAnswering::NoteTrainers(const PendingCall& call, Version base) {
  if (!rules_.tracks_bases()) return;
  for (const PendingCall::Trainer& trainer : call.trainers) {
    state_.members.AddBase(trainer.worker, trainer.slot, base);
  }
}

std::optional<RoundWork> CallAnswering::WorkFor(const PendingCall::Trainer& trainer,
                                                Version version) {
  if (!state_.open.work.has_value()) return std::nullopt;
  if (state_.run.phase >= Phase::kDraining) return RoundWork{.kind = RoundWork::Kind::kFinished};
  const bool repeats = version < state_.versions.decided() &&
                       judge_.VersionToRepeat(trainer.worker, trainer.incarnation) == version;
  if (repeats) return RoundWork{.batches = *state_.open.work->LastOf(trainer.worker)};
  RoundWorkPlan& work = *state_.open.work;
  return work.For(trainer.worker,
                  work.has_named() ? std::vector<WorkerId>() : judge_.ask().Owing());
}

void CallAnswering::BeginPull(const PendingCall& call) {
  if (call.reader.has_value()) {
    state_.members.BeginPull(call.reader->first, call.reader->second);
  } else {
    state_.reader_pulls.Begin(call.call, judge_.VersionFor(call));
  }
}

}  // namespace slipstream
