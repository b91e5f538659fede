// The part of ShardMachine that decides about pulls, and about when waiting calls are answered.

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>
#include <vector>

#include "server/core/shard_machine.h"

namespace slipstream {

std::optional<PullRefusal> ShardMachine::RefusePull(const PullRequest& request) const {
  // A reader that pulls one shard by itself need not know how the model was cut.
  const bool takes_any_map = request.shard_map == 0 && !request.identity.has_value();
  if (!has_plan()) return PullRefusal::kNoModel;
  if (request.shard_map != state_.run.plan->shard_map && !takes_any_map) {
    return PullRefusal::kWrongShardMap;
  }
  // The life of one shard is one of all only where shards are in step. A worker that has missed the
  // end of such a stage learns of it from the answer.
  if (traits_.in_step && request.min_life > life()) return PullRefusal::kLaterLife;
  if (auto refusal = RefuseIdentity(request)) return refusal;
  const bool is_outsider = !request.identity.has_value();
  const size_t most = is_outsider ? options_.parked_readers_max : options_.parked_of_member_max;
  if (waiting() >= options_.parked_max || WaitingPulls(ReaderOf(request)) >= most) {
    return PullRefusal::kTooManyParked;
  }
  return std::nullopt;
}

std::optional<PullRefusal> ShardMachine::RefuseIdentity(const PullRequest& request) const {
  if (!request.identity.has_value()) return std::nullopt;
  const Identity& identity = *request.identity;
  if (identity.run != state_.run.plan->run) return PullRefusal::kWrongRun;
  const auto verdict = members().CheckMember(identity.worker, identity.incarnation);
  if (verdict == MemberTable::Verdict::kFenced) return PullRefusal::kFenced;
  if (verdict != MemberTable::Verdict::kFresh) return PullRefusal::kUnknownMember;
  if (!request.trains) return std::nullopt;
  if (request.slot >= options_.gradients_in_flight) return PullRefusal::kNoSuchSlot;
  if (request.sequence > members().At(identity.worker).expected()) {
    return PullRefusal::kOutOfSequence;
  }
  return std::nullopt;
}

Reader ShardMachine::ReaderOf(const PullRequest& request) {
  if (!request.identity.has_value()) return std::nullopt;
  return std::pair(request.identity->worker, request.identity->incarnation);
}

PullRequest ShardMachine::InThisLife(PullRequest request) const {
  if (request.min_life == life()) return request;
  request.min_version = {};
  request.held.reset();
  request.sequence = Sequence{1};
  return request;
}

ShardOutput ShardMachine::OnPull(CallId call, const PullRequest& pull) {
  const PullRequest request = InThisLife(pull);
  ShardOutput output;
  if (auto refusal = RefusePull(request)) {
    if (refusal == PullRefusal::kUnknownMember && IsMadeUp(*request.identity)) {
      refusal = PullRefusal::kMadeUpMember;
    }
    output.answers.push_back({.call = call, .refusal = refusal});
    return output;
  }
  PendingCall pending = {.call = call,
                         .exact = request.trains ? std::nullopt : request.exact,
                         .condition = {.version = request.min_version},
                         .wants_weights = true,
                         .held = request.held,
                         .is_pull = true,
                         .awaited_reader = request.reader,
                         .reader = ReaderOf(request)};
  // A pull that comes after the push that it was made for is a late repetition: its sender has gone
  // on, and will not compute from the answer.
  if (request.trains && request.identity.has_value() &&
      request.sequence == members().At(request.identity->worker).expected()) {
    const WorkerId worker = request.identity->worker;
    pending.trainers.push_back({worker, request.identity->incarnation, request.slot});
    pending.goes_on = true;
    // A call of an earlier life may be a late repetition, whose worker waits for others elsewhere.
    if (pull.min_life == life()) EnterPace(worker, request.clock);
    pending.condition = WaitsFor(worker, request.slot, /*after_push=*/false);
    if (const auto repeated = VersionToRepeat(worker, request.identity->incarnation)) {
      pending.condition.version = *repeated;
    }
    pending.condition.version = std::max(pending.condition.version, request.min_version);
    OweFrom(worker, pending.condition.version);
    if (pending.condition.version > decided()) ExcuseFromOpenRound(worker, output);
  }
  const bool was_held_back = state_.reader_pace.HoldsBack(decided());
  Answer(std::move(pending), output);
  const bool is_free = was_held_back && !state_.reader_pace.HoldsBack(decided());
  if (traits_.keeps_pace || is_free) ServeWaiting(output);
  SaveIfDue(output);
  return output;
}

bool ShardMachine::OnCancelled(CallId call) { return state_.waiting.Cancel(call); }

void ShardMachine::OweFrom(WorkerId worker, Version version) {
  std::optional<Version>& owes_from = state_.members.At(worker).owes_from;
  if (!owes_from.has_value()) owes_from = version;
}

void ShardMachine::ExcuseFromOpenRound(WorkerId worker, ShardOutput& output) {
  if (!traits_.one_per_member || !is_initialized() || round().HasHeardFrom(worker)) return;
  state_.open.round.Excuse(worker);
  Advance(output);
}

void ShardMachine::EnterPace(WorkerId worker, WorkerClock named) {
  MemberRecord& member = state_.members.At(worker);
  // A worker that joins or comes back continues at the clock of the slowest member, or at the last
  // such clock. Otherwise the others would wait for it until it had caught up.
  member.KeepPace(member.is_in_pace ? named : state_.pace.Entered(named));
  OnPaceChanged();
}

void ShardMachine::OnPaceChanged() {
  if (traits_.keeps_pace) state_.pace.Note(members().SlowestClock());
}

bool ShardMachine::ReadersWaitForPlace() const {
  return std::ranges::any_of(state_.waiting.all(), [this](const PendingCall& call) {
    if (!call.is_pull || call.reader.has_value() || call.condition.version > published()) {
      return false;
    }
    return call.exact.has_value() ? state_.versions.FindKept(*call.exact).has_value()
                                  : is_initialized();
  });
}

Version ShardMachine::VersionFor(const PendingCall& call) const {
  if (call.exact.has_value()) return *state_.versions.FindKept(*call.exact);
  if (!call.is_pull || call.trainers.empty()) return published();
  const PendingCall::Trainer& trainer = call.trainers.front();
  const auto repeated = VersionToRepeat(trainer.worker, trainer.incarnation);
  return repeated >= call.condition.version ? *repeated : published();
}

std::optional<Version> ShardMachine::VersionToRepeat(WorkerId worker,
                                                     Incarnation incarnation) const {
  const MemberRecord* member = members().Find(worker, incarnation);
  // A worker that has pushed nothing in this life of the shard is not the one whose gradient is in
  // the last round.
  const bool follows = options_.repeats_rounds && member != nullptr &&
                       member->expected() == Sequence{1} && state_.open.did_last.contains(worker) &&
                       !round().HasHeardFrom(worker);
  if (!follows || phase() >= Phase::kDraining || uses_base_weights()) return std::nullopt;
  if (state_.open.work.has_value() && !state_.open.work->LastOf(worker).has_value())
    return std::nullopt;
  return oldest_kept() < decided() ? std::optional(Version{Value(decided()) - 1}) : std::nullopt;
}

bool ShardMachine::IsGone(const Stamp& stamp) const {
  if (!is_initialized() || state_.versions.FindKept(stamp).has_value()) return false;
  // At the end of a policy's stage the shard has drained, too, and goes on.
  const bool nothing_newer_comes = phase() > Phase::kDraining;
  return nothing_newer_comes || state_.versions.IsPast(stamp);
}

bool ShardMachine::CanServe(const PendingCall& call) const {
  const bool nothing_newer_comes = is_drained() || phase() == Phase::kFailed;
  const Version version = call.condition.version;
  if (!is_initialized() || (version > published() && !nothing_newer_comes)) return false;
  if (call.condition.slowest > WorkerClock{} && phase() != Phase::kFailed) return false;
  if (call.goes_on && state_.reader_pace.HoldsBack(decided())) return false;
  if (call.exact.has_value() && !state_.versions.FindKept(*call.exact).has_value()) return false;
  if (!call.is_pull) return true;
  // Until all shards have the weights of one grant, these may be replaced by another client's.
  if (!call.reader.has_value() && phase() <= Phase::kInitializing) return false;
  if (!call.reader.has_value()) {
    return state_.reader_pulls.HasPlaceFor(VersionFor(call), options_.reader_pulls_max,
                                           options_.versions_kept);
  }
  return members().PullsOf(call.reader->first, call.reader->second) == 0;
}

void ShardMachine::BeginPull(const PendingCall& call) {
  if (call.reader.has_value()) {
    state_.members.BeginPull(call.reader->first, call.reader->second);
  } else {
    state_.reader_pulls.Begin(call.call, VersionFor(call));
  }
}

bool ShardMachine::TryAnswer(PendingCall& call, ShardOutput& output) {
  state_.pace.Settle(call.condition, phase() >= Phase::kDraining, decided());
  if (call.exact.has_value() && IsGone(*call.exact)) {
    output.answers.push_back({.call = call.call, .refusal = PullRefusal::kLagged});
    return true;
  }
  if (!CanServe(call)) return false;
  output.answers.push_back(Served(std::move(call)));
  return true;
}

void ShardMachine::Answer(PendingCall call, ShardOutput& output) {
  state_.pace.Settle(call.condition, phase() >= Phase::kDraining, decided());
  if (CanServe(call)) NoteTrainers(call, published());
  if (TryAnswer(call, output)) return;
  // The base version is fixed now: rounds that close before it is published add to its staleness.
  NoteTrainers(call, call.condition.version);
  state_.waiting.Add(std::move(call));
}

ShardAnswer ShardMachine::Served(PendingCall call) {
  const Version version = VersionFor(call);
  if (call.is_pull) BeginPull(call);
  state_.reader_pace.OnSent(call.awaited_reader, version);
  ShardAnswer answer = {.call = call.call, .push = std::move(call.push)};
  if (!call.wants_weights) return answer;
  answer.weights = {.version = version,
                    .count = state_.run.plan->count,
                    .work = std::nullopt,
                    .unchanged = !call.is_pull && call.held == version,
                    .life = life(),
                    .stage = state_.run.stage};
  answer.weights->parts.resize(call.parts);
  if (call.is_pull && call.trainers.empty()) {
    const VersionRecord& record = RecordOf(version);
    answer.weights->examples = record.examples;
    answer.weights->stamp = record.stamp;
    answer.weights->label = record.label;
    const bool is_base = call.held >= oldest_kept() && call.held <= version;
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

PartAnswer ShardMachine::ServeTrainer(const PendingCall::Trainer& trainer, ShardAnswer& answer) {
  PartAnswer told = {.work = WorkFor(trainer, answer.weights->version), .clock = {}};
  // A worker that has left meanwhile is still answered, but has no record any more.
  const bool is_member = members().Find(trainer.worker, trainer.incarnation) != nullptr;
  if (is_member) told.clock = members().At(trainer.worker).clock;
  const bool is_to_train = !told.work.has_value() || told.work->kind == RoundWork::Kind::kCompute;
  if (!is_to_train) return told;
  answer.trainers.push_back(trainer.worker);
  if (uses_base_weights() && is_member) {
    state_.members.At(trainer.worker).Give(trainer.slot, published());
  }
  return told;
}

void ShardMachine::NoteTrainers(const PendingCall& call, Version base) {
  if (!tracks_bases()) return;
  for (const PendingCall::Trainer& trainer : call.trainers) {
    state_.members.At(trainer.worker).AddBase(trainer.slot, base);
  }
}

std::optional<RoundWork> ShardMachine::WorkFor(const PendingCall::Trainer& trainer,
                                               Version version) {
  if (!state_.open.work.has_value()) return std::nullopt;
  if (phase() >= Phase::kDraining) return RoundWork{.kind = RoundWork::Kind::kFinished};
  const bool repeats =
      version < decided() && VersionToRepeat(trainer.worker, trainer.incarnation) == version;
  if (repeats) return RoundWork{.batches = *state_.open.work->LastOf(trainer.worker)};
  return state_.open.work->For(trainer.worker, Owing());
}

void ShardMachine::ServeWaiting(ShardOutput& output) {
  bool was_held_back = false;
  do {
    was_held_back = state_.reader_pace.HoldsBack(decided());
    // A call that is served may take the place that the next one waits for.
    state_.waiting.Serve([&](PendingCall& call) { return TryAnswer(call, output); });
    // A reader that was served may have been the one that others, who came before it, wait for.
  } while (was_held_back && !state_.reader_pace.HoldsBack(decided()));
}

}  // namespace slipstream
