#include "server/core/shard_machine.h"

#include <algorithm>
#include <set>
#include <utility>

#include "common/base/check.h"
#include "common/policy/staleness_compensation.h"

namespace slipstream {

ShardMachine::ShardMachine(const Options& options)
    : options_(options),
      guard_(options.stages.front().consistency.max_staleness),
      rule_(RowOf(options.optimizer.kind)),
      scaling_(RowOf(options.optimizer.staleness_scaling)),
      stage_(options.stages.front()),
      traits_(stage_.consistency.traits()),
      state_{.open = {.round = NewRound()}} {
  AdoptStage();
}

void ShardMachine::Restore(ShardState state) {
  state_ = std::move(state);
  AdoptStage();
}

void ShardMachine::SetPlan(const ShardPlan& plan) {
  PS_CHECK(!has_plan());
  state_.run.plan = plan;
  AdoptStage();
  MakeWork();
}

void ShardMachine::AdoptStage() {
  stage_ = stages()[state_.run.stage];
  traits_ = stage_.consistency.traits();
  takes_excuses_ = std::ranges::any_of(
      stages(), [](const RunStage& stage) { return stage.consistency.traits().waits_for_members; });
  policy_ = MakePolicy(stage_.consistency);
  compensation_ = MakeCompensation(options_.optimizer);
  learning_rate_.reset();
  if (!has_plan()) return;
  learning_rate_.emplace(
      stage_.learning_rate, options_.optimizer.schedule,
      LearningRate::Extent{state_.run.plan->examples_per_epoch, options_.epochs});
}

void ShardMachine::MakeWork() {
  state_.open.work.reset();
  if (!works_in_rounds() || !is_first()) return;
  const uint64_t begin = state_.run.stage == 0 ? 0 : EndOfStage(state_.run.stage - 1);
  state_.open.work.emplace(EndOfStage(state_.run.stage), options_.quantum, begin);
}

void ShardMachine::OnStages(const std::vector<RunStage>& stages) {
  std::vector<RunStage> guarded = stages;
  for (RunStage& stage : guarded) stage.consistency.max_staleness = guard_.spec();
  if (guarded.size() <= state_.run.stage || guarded == state_.run.stages) return;
  state_.run.stages = std::move(guarded);
  AdoptStage();
  if (!state_.open.work.has_value()) return;
  state_.open.work->EndBy(EndOfStage(state_.run.stage), state_.run.plan->batches_per_epoch);
}

void ShardMachine::OnStage(uint32_t stage) {
  // A shard that takes the place of one that is gone may learn of a later stage and of the run's
  // failure at once, and have no plan.
  if (stage >= stages().size() || !has_plan()) return;
  while (state_.run.stage < stage) EnterNextStage();
}

void ShardMachine::EnterNextStage() {
  const ConsistencySpec before = stage_.consistency;
  ++state_.run.stage;
  AdoptStage();
  if (!stage_.begins_at_once) {
    // The coordinator moves on when every shard has drained, so no gradient waits in a round.
    PS_CHECK(round().contributions() == 0);
    state_.run.stage_begin = decided();
    state_.run.phase = Phase::kTraining;
    MakeWork();
    state_.open.Begin(NewRound());
    state_.intake.TakeDraft();
  }
  if (stage_.begins_at_once && stage_.consistency == before) return;
  // A member with work in this stage says so by its next call; until then nobody waits for its
  // clock. All continue at one clock: where no pace was kept, their clocks have come apart.
  state_.pace.RestAll(traits_.keeps_pace ? members().NewestClock() : WorkerClock{});
  state_.members.RestAll();
}

ShardOutput ShardMachine::OnView(const View& view) {
  ShardOutput output;
  if (view.number <= members().view().number) return output;
  state_.members.InstallView(view);
  state_.unknown_members.OnKnown(members().newest());
  OnPaceChanged();
  // A smaller view may complete the open round at once, and the slowest member may have left.
  if (is_initialized()) Advance(output);
  if (traits_.keeps_pace) ServeWaiting(output);
  SaveIfDue(output);
  return output;
}

ShardOutput ShardMachine::OnPhase(Phase phase, Version drain_version) {
  ShardOutput output;
  if (phase < state_.run.phase) return output;
  state_.run.phase = phase;
  state_.run.drain_version = drain_version;
  if (is_initialized()) Advance(output);
  ServeWaiting(output);
  SaveIfDue(output);
  return output;
}

ShardOutput ShardMachine::OnWorkEnds() {
  ShardOutput output;
  if (!state_.open.work.has_value()) return output;
  state_.open.work->Close();
  // Pulls that wait for a version that will not be made are answered now.
  ServeWaiting(output);
  SaveIfDue(output);
  return output;
}

ShardOutput ShardMachine::OnPublished(Version version) {
  state_.versions.Publish(version, options_.versions_kept);
  ShardOutput output;
  output.lagged = state_.reader_pulls.NoteLagging(oldest_kept());
  ServeWaiting(output);
  SaveIfDue(output);
  return output;
}

ShardOutput ShardMachine::OnPullDone(CallId call, const Reader& reader) {
  if (reader.has_value()) {
    state_.members.EndPull(reader->first, reader->second);
  } else {
    state_.reader_pulls.End(call);
  }
  ShardOutput output;
  ServeWaiting(output);
  return output;
}

void ShardMachine::ReleaseBytes(uint64_t bytes) { state_.intake.Release(bytes); }

ShardOutput ShardMachine::OnProcessEnd(const EndedProcess& end) {
  Restore(Continued(std::move(state_), end));
  ShardOutput output;
  SaveIfDue(output);
  return output;
}

uint64_t ShardMachine::bytes_queued_max() const {
  if (options_.push_bytes_max > 0) return options_.push_bytes_max;
  const uint64_t pushes =
      std::max<uint64_t>(1, view().members.size()) * options_.gradients_in_flight;
  return has_plan() ? pushes * state_.run.plan->count * sizeof(float) : 0;
}

uint32_t ShardMachine::round_size() const {
  return stage_.consistency.round_size(static_cast<uint32_t>(view().members.size()));
}

double ShardMachine::current_learning_rate() const {
  return learning_rate_.has_value() ? learning_rate_->At(examples_applied()) : stage_.learning_rate;
}

bool ShardMachine::is_drained() const {
  if (!is_initialized() || published() != decided() || round().contributions() > 0) return false;
  return WorkIsDone();
}

bool ShardMachine::WorkIsDone() const {
  if (!works_in_rounds()) return phase() >= Phase::kDraining;
  if (phase() < Phase::kDraining)
    return state_.open.work.has_value() && state_.open.work->finished();
  // Without members, nobody is left to push to the missing rounds.
  return decided() >= state_.run.drain_version || view().members.empty();
}

// Rounds.

std::vector<WorkerId> ShardMachine::Owing() const {
  return members().Where([this](const MemberRecord& member) {
    return member.owes_from.has_value() && *member.owes_from <= decided();
  });
}

MemberFacts ShardMachine::FactsOf(WorkerId worker, const MemberRecord& member) const {
  MemberFacts facts = {.worker = worker,
                       .owes = member.owes_from.has_value() && *member.owes_from <= decided(),
                       .heard = round().HasHeardFrom(worker),
                       .clock = member.clock,
                       .on_their_way = static_cast<uint32_t>(member.bases.size())};
  const auto oldest =
      std::ranges::min_element(member.bases, {}, [](const auto& base) { return base.second; });
  if (oldest != member.bases.end()) facts.oldest_base = oldest->second;
  return facts;
}

ShardMachine::Members ShardMachine::MembersNow() const {
  Members facts;
  if (!traits_.one_per_member && !tracks_bases()) return facts;  // No policy asks for them.
  members().ForEach([&](WorkerId worker, const MemberRecord& member) {
    facts.push_back(FactsOf(worker, member));
  });
  return facts;
}

ShardFacts ShardMachine::FactsWith(const Members& members) const {
  return {.decided = decided(),
          .is_first = is_first(),
          .contributions = round().contributions(),
          .excused = round().excused(),
          .was_held_back = state_.open.was_held_back,
          .is_draining = phase() >= Phase::kDraining,
          .member_count = static_cast<uint32_t>(view().members.size()),
          .members = members};
}

Lack ShardMachine::Lacks() const { return policy_->Lacks(FactsWith(MembersNow())); }

Admission ShardMachine::Admit(const PushHeader& header) const {
  if (IsOfEarlierStage(header)) {
    if (StaysTooStale(header)) return {Admission::Kind::kTooStale, ""};
    return {Admission::Kind::kLate, "its policy's epochs ended without it"};
  }
  const WorkerId worker = header.identity.worker;
  const MemberFacts member = FactsOf(worker, members().At(worker));
  Admission admission = policy_->Admit(FactsWith({}), {.member = member, .base = BaseOf(header)});
  if (admission.kind == Admission::Kind::kJoin && IsBaseGone(header)) {
    admission.kind = Admission::Kind::kTooStale;
  }
  return admission;
}

bool ShardMachine::StaysTooStale(const PushHeader& header) const {
  // Its worker has gone on with the same sequence, which the repetition must not use up.
  if (IsExcuse(header) || (works_in_rounds() && !IsOfEarlierStage(header))) return false;
  const bool is_beyond = guard_.Judge(StalenessOf(header)) == StalenessGuard::Verdict::kRefuse;
  return is_beyond || IsBaseGone(header);
}

bool ShardMachine::IsBaseGone(const PushHeader& header) const {
  if (!uses_base_weights() || header.count == 0 || header.base == decided()) return false;
  return !members().At(header.identity.worker).WasGiven(header.slot, header.base);
}

PullCondition ShardMachine::WaitsFor(WorkerId worker, uint32_t slot, bool after_push) const {
  const MemberRecord& record = members().At(worker);
  const MemberFacts member = FactsOf(worker, record);
  PullCondition condition = policy_->PullWaitsFor(
      FactsWith(MembersNow()),
      {.member = member, .after_push = after_push, .has_beside = record.HasBaseBeside(slot)});
  // A worker that asks again is given the version that it was promised.
  condition.version = record.FindBase(slot).value_or(condition.version);
  return condition;
}

void ShardMachine::Advance(ShardOutput& output) {
  const Lack lack = Lacks();
  if (lack.is_held_back && !std::exchange(state_.open.was_held_back, true)) {
    ++state_.tally.guard_counts.rounds_held_back;
  }
  const bool closes = lack.none();
  for (const Fold& fold : state_.open.round.TakeFolds(lack.members, closes)) {
    output.folds.push_back(fold);
  }
  if (closes) CloseRound(output);
  if (output.folds.empty() && !closes) return;
  const std::optional<PushIntake::Draft> draft = state_.intake.TakeDraft();
  if (!draft.has_value() || !closes || AsForecast(output) != draft->forecast) return;
  output.update->is_drafted = output.folds.front().push == draft->push;
}

std::optional<Forecast> ShardMachine::AsForecast(const ShardOutput& output) {
  const Update& update = *output.update;
  if (output.folds.size() != 1 || !output.folds.front().first) return std::nullopt;
  if (output.folds.front().clip != 1.0f || !update.absent.empty()) return std::nullopt;
  if (update.inverse_divisor != 1.0f || update.step_scale != 1.0f) return std::nullopt;
  return Forecast{.from = update.from,
                  .weight = output.folds.front().weight,
                  .learning_rate = update.learning_rate};
}

void ShardMachine::CloseRound(ShardOutput& output) {
  Update update = {.from = decided(), .to = Next(decided())};
  VersionRecord made = {.examples = examples_applied() + round().examples(),
                        .stamp = StampOfRound(),
                        .label = state_.versions.newest().label};
  if (round().contributions() == 0) {
    update.is_empty = true;
  } else {
    state_.tally.lag.RecordUpdate(update.to, round().bases());
    const double scale = compensation_->RoundFactor(lag().window_mean());
    const double of_gradient = rule_.normalises ? 1 : scale;
    update.inverse_divisor = static_cast<float>(round().InverseDivisor() * of_gradient);
    update.step_scale = static_cast<float>(scale / of_gradient);
    update.learning_rate = static_cast<float>(current_learning_rate());
    // A rule that normalises steps cancels a factor that all gradients share.
    state_.tally.lag.RecordScale(rule_.normalises ? scale : scale * round().mean_scale());
    update.absent = round().absent();
    made.label = round().last().label;
  }
  state_.versions.Decide(made);
  state_.open.Close(NewRound(), traits_.order == PolicyTraits::Order::kRank);
  state_.saves.OnDecided(decided());
  output.update = update;
}

void ShardMachine::SaveIfDue(ShardOutput& output) {
  if (!options_.saves || !is_initialized()) return;
  const bool is_round_empty = round().contributions() == 0;
  if (state_.saves.IsTime(decided(), is_round_empty, is_drained())) output.saves = true;
  if (output.saves) state_.saves.OnSaved(decided());
}

std::optional<Stamp> ShardMachine::StampOf(const PushHeader& header) {
  if (header.kind != PushKind::kValues) return std::nullopt;
  return Stamp{.publisher = header.identity.incarnation, .number = Value(header.clock)};
}

std::optional<Stamp> ShardMachine::StampOfRound() const {
  if (traits_.in_step) return Stamp{.number = Value(Next(decided()))};
  return round().contributions() == 0 ? std::nullopt : round().last().stamp;
}

void ShardMachine::CheckInvariants() const {
  members().CheckInvariants(options_.gradients_in_flight);
  state_.versions.CheckInvariants(options_.versions_kept);
  state_.reader_pulls.CheckInvariants(oldest_kept(), options_.reader_pulls_max,
                                      options_.versions_kept);
  if (const std::optional<PushIntake::Draft>& draft = state_.intake.draft()) {
    PS_CHECK(draft->forecast.from == decided() && published() == decided());
    PS_CHECK(round().contributions() == 0);
  }
  PS_CHECK(state_.waiting.Fault().empty());
}

}  // namespace slipstream
