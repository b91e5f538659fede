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
      state_{.round = NewRound()} {
  AdoptStage();
}

void ShardMachine::Restore(ShardState state) {
  state_ = std::move(state);
  AdoptStage();
}

void ShardMachine::SetPlan(const ShardPlan& plan) {
  PS_CHECK(!has_plan());
  state_.plan = plan;
  AdoptStage();
  MakeWork();
}

void ShardMachine::AdoptStage() {
  stage_ = stages()[state_.stage];
  traits_ = stage_.consistency.traits();
  takes_excuses_ = std::ranges::any_of(
      stages(), [](const RunStage& stage) { return stage.consistency.traits().waits_for_members; });
  policy_ = MakePolicy(stage_.consistency);
  compensation_ = MakeCompensation(options_.optimizer);
  learning_rate_.reset();
  if (!has_plan()) return;
  learning_rate_.emplace(stage_.learning_rate, options_.optimizer.schedule,
                         LearningRate::Extent{state_.plan->examples_per_epoch, options_.epochs});
}

void ShardMachine::MakeWork() {
  state_.work.reset();
  if (!works_in_rounds() || !is_first()) return;
  const uint64_t begin = state_.stage == 0 ? 0 : EndOfStage(state_.stage - 1);
  state_.work.emplace(EndOfStage(state_.stage), options_.quantum, begin);
}

void ShardMachine::OnStages(const std::vector<RunStage>& stages) {
  std::vector<RunStage> guarded = stages;
  for (RunStage& stage : guarded) stage.consistency.max_staleness = guard_.spec();
  if (guarded.size() <= state_.stage || guarded == state_.stages) return;
  state_.stages = std::move(guarded);
  AdoptStage();
  if (!state_.work.has_value()) return;
  state_.work->EndBy(EndOfStage(state_.stage), state_.plan->batches_per_epoch);
}

void ShardMachine::OnStage(uint32_t stage) {
  // A shard that takes the place of one that is gone may learn of a later stage and of the run's
  // failure at once, and have no plan.
  if (stage >= stages().size() || !has_plan()) return;
  while (state_.stage < stage) EnterNextStage();
}

void ShardMachine::EnterNextStage() {
  const ConsistencySpec before = stage_.consistency;
  ++state_.stage;
  AdoptStage();
  if (!stage_.begins_at_once) {
    // The coordinator moves on when every shard has drained, so no gradient waits in a round.
    PS_CHECK(round().contributions() == 0);
    state_.stage_begin = decided();
    state_.phase = Phase::kTraining;
    MakeWork();
    state_.round = NewRound();
    state_.round_was_held_back = false;
    state_.did_last.clear();
    state_.draft.reset();
  }
  if (stage_.begins_at_once && stage_.consistency == before) return;
  // A member with work in this stage says so by its next call; until then nobody waits for its
  // clock. All continue at one clock: where no pace was kept, their clocks have come apart.
  if (traits_.keeps_pace) state_.pace = std::max(state_.pace, members().NewestClock());
  state_.members.RestAll();
  state_.slowest.reset();
}

ShardOutput ShardMachine::OnView(const View& view) {
  ShardOutput output;
  if (view.number <= members().view().number) return output;
  state_.members.InstallView(view);
  state_.unknown_members.OnKnown(members().newest());
  OnPaceChanged();
  // A smaller view may complete the open round at once, and the slowest member may have left.
  if (state_.is_initialized) Advance(output);
  if (traits_.keeps_pace) ServeWaiting(output);
  SaveIfDue(output);
  return output;
}

ShardOutput ShardMachine::OnPhase(Phase phase, Version drain_version) {
  ShardOutput output;
  if (phase < state_.phase) return output;
  state_.phase = phase;
  state_.drain_version = drain_version;
  if (state_.is_initialized) Advance(output);
  ServeWaiting(output);
  SaveIfDue(output);
  return output;
}

ShardOutput ShardMachine::OnWorkEnds() {
  ShardOutput output;
  if (!state_.work.has_value()) return output;
  state_.work->Close();
  // Pulls that wait for a version that will not be made are answered now.
  ServeWaiting(output);
  SaveIfDue(output);
  return output;
}

ShardOutput ShardMachine::OnPublished(Version version) {
  PS_CHECK(version == Next(state_.published) && version <= state_.decided);
  state_.published = version;
  if (Value(version) - Value(oldest_kept()) >= options_.versions_kept) state_.versions.pop_front();
  ShardOutput output;
  EndLagging(output);
  ServeWaiting(output);
  SaveIfDue(output);
  return output;
}

ShardOutput ShardMachine::OnPullDone(CallId call, const Reader& reader) {
  if (reader.has_value()) {
    state_.members.EndPull(reader->first, reader->second);
  } else {
    PS_CHECK(state_.reader_pulls.erase(call) == 1);
  }
  ShardOutput output;
  ServeWaiting(output);
  return output;
}

void ShardMachine::ReleaseBytes(uint64_t bytes) {
  PS_CHECK(bytes <= state_.bytes_queued);
  state_.bytes_queued -= bytes;
}

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
  return has_plan() ? pushes * state_.plan->count * sizeof(float) : 0;
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
  if (phase() < Phase::kDraining) return state_.work.has_value() && state_.work->finished();
  // Without members, nobody is left to push to the missing rounds.
  return decided() >= state_.drain_version || view().members.empty();
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
          .was_held_back = state_.round_was_held_back,
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
  if (lack.is_held_back && !std::exchange(state_.round_was_held_back, true)) {
    ++state_.guard_counts.rounds_held_back;
  }
  const bool closes = lack.none();
  for (const Fold& fold : state_.round.TakeFolds(lack.members, closes)) {
    output.folds.push_back(fold);
  }
  if (closes) CloseRound(output);
  if (output.folds.empty() && !closes) return;
  const std::optional<ShardState::Draft> draft = std::exchange(state_.draft, std::nullopt);
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
                        .label = state_.versions.back().label};
  if (round().contributions() == 0) {
    update.is_empty = true;
  } else {
    state_.lag.RecordUpdate(update.to, round().bases());
    const double scale = compensation_->RoundFactor(lag().window_mean());
    const double of_gradient = rule_.normalises ? 1 : scale;
    update.inverse_divisor = static_cast<float>(round().InverseDivisor() * of_gradient);
    update.step_scale = static_cast<float>(scale / of_gradient);
    update.learning_rate = static_cast<float>(current_learning_rate());
    // A rule that normalises steps cancels a factor that all gradients share.
    state_.lag.RecordScale(rule_.normalises ? scale : scale * round().mean_scale());
    update.absent = round().absent();
    made.label = round().last().label;
  }
  state_.versions.push_back(made);
  state_.decided = update.to;
  state_.round_was_held_back = false;
  if (state_.work.has_value()) {
    state_.work->NextRound([this](WorkerId worker) { return round().HasDone(worker); });
  }
  if (traits_.order == PolicyTraits::Order::kRank) state_.did_last = state_.round.TakeDone();
  state_.round = NewRound();
  if (state_.save.version != Version{} && decided() == state_.save.version) {
    state_.save_is_due = true;
  }
  output.update = update;
}

void ShardMachine::SaveIfDue(ShardOutput& output) {
  if (!options_.saves || !is_initialized()) return;
  const bool is_possible = round().contributions() == 0 && state_.last_saved != decided();
  if (is_possible && (state_.save_is_due || is_drained())) output.saves = true;
  if (!output.saves) return;
  state_.last_saved = decided();
  state_.save_is_due = false;
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
  PS_CHECK(published() <= decided());
  PS_CHECK(state_.life_begin <= state_.kept_from && state_.kept_from <= published());
  const uint64_t kept =
      std::min<uint64_t>(options_.versions_kept, Value(published()) - Value(state_.kept_from) + 1);
  PS_CHECK(Value(published()) - Value(oldest_kept()) + 1 == kept);
  PS_CHECK(state_.reader_pulls.size() <= options_.reader_pulls_max);
  const std::set<Version> read = VersionsRead();
  PS_CHECK(read.size() <= options_.versions_kept + 1);
  PS_CHECK(std::ranges::count_if(read, [this](Version v) { return v < oldest_kept(); }) <=
           static_cast<ptrdiff_t>(kReaderVersionsMax));
  if (state_.draft.has_value()) {
    PS_CHECK(state_.draft->forecast.from == decided() && published() == decided());
    PS_CHECK(round().contributions() == 0);
  }
  std::set<CallId> names;
  for (const PendingCall& call : state_.waiting) PS_CHECK(names.insert(call.call).second);
}

}  // namespace slipstream
