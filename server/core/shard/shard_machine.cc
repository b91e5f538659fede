#include "server/core/shard/shard_machine.h"

#include <string>
#include <utility>

#include "common/base/check.h"
#include "common/protocol/composite_push.h"
#include "server/core/shard/composite_judge.h"
#include "server/core/shard/push_counting.h"

namespace slipstream {
namespace {

/// Appends `more` to `output`. Orders close the open round at most once, so nothing is folded after
/// an update.
void Append(ShardOutput more, ShardOutput& output) {
  PS_CHECK(!output.update.has_value() || (more.folds.empty() && !more.update.has_value()));
  for (const Fold& fold : more.folds) output.folds.push_back(fold);
  if (more.update.has_value()) output.update = more.update;
  output.lagged.insert(output.lagged.end(), more.lagged.begin(), more.lagged.end());
  for (ShardAnswer& answer : more.answers) output.answers.push_back(std::move(answer));
  output.saves = output.saves || more.saves;
}

}  // namespace

ShardMachine::ShardMachine(const Options& options)
    : rules_(options), state_{.open = {.round = rules_.NewRound()}} {
  MakeAwaited();
}

void ShardMachine::Restore(ShardState state) {
  state_ = std::move(state);
  rules_.Adopt(state_.run);
  MakeAwaited();
}

void ShardMachine::MakeAwaited() {
  std::optional<AwaitedMembers>& awaited = state_.open.awaited;
  awaited.reset();
  if (rules_.traits().one_per_member) awaited.emplace(members(), round(), decided());
}

// Orders.

std::optional<uint64_t> ShardMachine::ValuesOrdered(const ServerOrders& orders) const {
  if (orders.number <= state_.run.orders || has_plan() || !orders.model.has_value()) return {};
  return orders.model->shard_map.range(rules_.options().shard).size();
}

ShardOutput ShardMachine::OnOrders(const ServerOrders& orders) {
  ShardOutput output;
  if (orders.number <= state_.run.orders) return output;
  if (const std::optional<uint64_t> values = ValuesOrdered(orders)) {
    SetPlan({.run = orders.run,
             .shard_map = orders.model->shard_map.fingerprint(),
             .count = *values,
             .batches_total = orders.model->batches_total,
             .batches_per_epoch = orders.model->batches_per_epoch,
             .examples_per_epoch = orders.model->examples_per_epoch});
  }
  state_.run.orders = orders.number;
  state_.initial_weights.Order(orders.grant, orders.initializer);
  OnStages(orders.stages);
  OnStage(orders.stage);
  Append(OnView(orders.view), output);
  Append(OnPhase(orders.phase, orders.drain_version), output);
  if (orders.ends_work) Append(OnWorkEnds(), output);
  Append(OnAwaitedReaders(orders.awaited_readers), output);
  Append(OnSaveOrder(orders.save), output);
  SaveIfDue(output);
  return output;
}

void ShardMachine::SetPlan(const ShardPlan& plan) {
  PS_CHECK(!has_plan());
  state_.run.plan = plan;
  rules_.Adopt(state_.run);
  state_.open.work = rules_.NewWork(state_.run);
}

void ShardMachine::OnStages(const std::vector<RunStage>& stages) {
  std::vector<RunStage> guarded = stages;
  for (RunStage& stage : guarded) stage.consistency.max_staleness = rules_.guard().spec();
  if (guarded.size() <= state_.run.stage || guarded == state_.run.stages) return;
  state_.run.stages = std::move(guarded);
  rules_.Adopt(state_.run);
  MakeAwaited();
  if (!state_.open.work.has_value()) return;
  state_.open.work->EndBy(rules_.EndOf(state_.run, state_.run.stage),
                          state_.run.plan->batches_per_epoch);
}

void ShardMachine::OnStage(uint32_t stage) {
  // A shard that takes the place of one that is gone may learn of a later stage and of the run's
  // failure at once, and have no plan.
  if (stage >= rules_.StagesOf(state_.run).size() || !has_plan()) return;
  while (state_.run.stage < stage) EnterNextStage();
}

void ShardMachine::EnterNextStage() {
  const ConsistencySpec before = rules_.stage().consistency;
  ++state_.run.stage;
  rules_.Adopt(state_.run);
  if (!rules_.stage().begins_at_once) {
    // The coordinator moves on when every shard has drained, so no gradient waits in a round.
    PS_CHECK(round().contributions() == 0);
    state_.run.stage_begin = decided();
    state_.run.phase = Phase::kTraining;
    state_.open.work = rules_.NewWork(state_.run);
    state_.open.Begin(rules_.NewRound());
    state_.intake.TakeDraft();
  }
  MakeAwaited();
  if (rules_.stage().begins_at_once && rules_.stage().consistency == before) return;
  // A member with work in this stage says so by its next call; until then nobody waits for its
  // clock. All continue at one clock: where no pace was kept, their clocks have come apart.
  state_.pace.RestAll(rules_.traits().keeps_pace ? members().NewestClock() : WorkerClock{});
  state_.members.RestAll();
}

ShardOutput ShardMachine::OnView(const View& view) {
  ShardOutput output;
  if (view.number <= members().view().number) return output;
  state_.members.InstallView(view);
  MakeAwaited();
  state_.unknown_members.OnKnown(members().newest());
  progress().OnPaceChanged();
  // A smaller view may complete the open round at once, and the slowest member may have left.
  if (is_initialized()) progress().Advance(output);
  if (rules_.traits().keeps_pace) answering().ServeWaiting(output);
  SaveIfDue(output);
  return output;
}

ShardOutput ShardMachine::OnPhase(Phase phase, Version drain_version) {
  ShardOutput output;
  if (phase < state_.run.phase) return output;
  state_.run.phase = phase;
  state_.run.drain_version = drain_version;
  if (is_initialized()) progress().Advance(output);
  answering().ServeWaiting(output);
  SaveIfDue(output);
  return output;
}

ShardOutput ShardMachine::OnWorkEnds() {
  ShardOutput output;
  if (!state_.open.work.has_value()) return output;
  state_.open.work->Close();
  // Pulls that wait for a version that will not be made are answered now.
  answering().ServeWaiting(output);
  SaveIfDue(output);
  return output;
}

ShardOutput ShardMachine::OnAwaitedReaders(const LagLimits& readers) {
  ShardOutput output;
  if (!rules_.is_first()) return output;
  state_.reader_pace.Adopt(readers, published());
  answering().ServeWaiting(output);
  return output;
}

ShardOutput ShardMachine::OnSaveOrder(const SaveOrder& order) {
  ShardOutput output;
  if (!rules_.options().saves || !state_.saves.Order(order, decided())) return output;
  SaveIfDue(output);
  return output;
}

// Initial weights.

absl::Status ShardMachine::CheckInitializer(const InitializeHeader& header) const {
  return state_.initial_weights.Check(header, state_.run.plan, phase());
}

absl::StatusOr<bool> ShardMachine::OnInitialWeights(const InitializeHeader& header) {
  if (absl::Status status = CheckInitializer(header); !status.ok()) return status;
  return state_.initial_weights.Receive(header.grant);
}

ShardOutput ShardMachine::OnInitialized(uint64_t grant) {
  PS_CHECK(has_plan());
  ShardOutput output;
  if (state_.initial_weights.Place(grant)) answering().ServeWaiting(output);
  state_.saves.OnInitialized();
  SaveIfDue(output);
  return output;
}

// Calls.

ShardOutput ShardMachine::OnPull(CallId call, const PullRequest& pull) {
  const PullJudge judge(rules_, state_);
  const PullRequest request = judge.InThisGeneration(pull);
  ShardOutput output;
  if (auto refusal = judge.Refuse(request)) {
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
    // A call of an earlier generation may be a late repetition, whose worker waits for others
    // elsewhere.
    if (pull.min_generation == generation()) progress().EnterPace(worker, request.clock);
    pending.condition = judge.ask().WaitsFor(worker, request.slot, /*after_push=*/false);
    if (const auto repeated = judge.VersionToRepeat(worker, request.identity->incarnation)) {
      pending.condition.version = *repeated;
    }
    pending.condition.version = std::max(pending.condition.version, request.min_version);
    progress().OweFrom(worker, pending.condition.version);
    if (pending.condition.version > decided()) progress().Excuse(worker, output);
  }
  const bool was_held_back = state_.reader_pace.HoldsBack(decided());
  answering().Answer(std::move(pending), output);
  const bool is_free = was_held_back && !state_.reader_pace.HoldsBack(decided());
  if (rules_.traits().keeps_pace || is_free) answering().ServeWaiting(output);
  SaveIfDue(output);
  return output;
}

PushAdmission ShardMachine::OnPushHeader(const PushHeader& header) {
  PushAdmission admission = IsComposite(header) ? JudgeComposite(header) : JudgePush(header);
  if (admission.refusal.has_value()) {
    state_.tally.CountRefusal(*admission.refusal, rules_.guard());
    return admission;
  }
  admission.push = state_.intake.Admit(header.count * sizeof(float));
  if (IsComposite(header)) return admission;
  MemberRecord& member = state_.members.At(header.identity.worker);
  if (judge().IsNext(header)) {
    state_.members.SettleBase(header.identity.worker, header.slot, header.base);
  }
  if (header.count > 0) ++member.pushes_arriving;
  if (state_.intake.draft().has_value()) return admission;
  admission.draft = judge().ForecastUpdate(header);
  if (admission.draft.has_value()) state_.intake.BeginDraft(admission.push, *admission.draft);
  return admission;
}

PushAdmission ShardMachine::JudgePush(const PushHeader& header) {
  const PushJudge judge(rules_, state_);
  const auto [_, worker, incarnation] = header.identity;
  PushAdmission admission = {.refusal = judge.RefuseByHeader(header),
                             .is_of_member = judge.IsOfMember(header)};
  std::optional<PushReply>& refusal = admission.refusal;
  if (refusal.has_value() && IsMadeUp(header.identity)) {
    refusal =
        judge.Refusal(PushOutcome::kUnknownMember,
                      "the coordinator knows no incarnation " + std::to_string(Value(incarnation)) +
                          " of worker " + std::to_string(Value(worker)));
  }
  // A gradient only grows staler while its payload comes, so it can be refused now. Not so where
  // others wait for clocks: there the clock of the complete push counts.
  if (!refusal && !rules_.traits().keeps_pace) refusal = judge.RefuseTooStale(header);
  if (!refusal) refusal = judge.RefuseForMemory(header);
  return admission;
}

PushAdmission ShardMachine::JudgeComposite(const PushHeader& header) const {
  const CompositeJudge composites(rules_, state_);
  PushAdmission admission = {.refusal = composites.Refuse(header),
                             .is_of_member = composites.IsOfMembers(header)};
  if (!admission.refusal) admission.refusal = judge().RefuseForMemory(header);
  return admission;
}

ShardOutput ShardMachine::OnPush(CallId call, const PushFacts& facts) {
  NoteArrival(facts.header);
  ShardOutput output;
  PushCounting counting(rules_, state_);
  PushCounting::Decision decision = counting.Decide(facts, output);
  judge().Sign(decision.reply);
  // An answer that is given again is of the generation of its push.
  if (decision.reply.outcome == PushOutcome::kDuplicate)
    decision.reply.generation = facts.header.generation;
  OnDraftEnded(facts.push);
  if (!output.keeps_payload) ReleaseBytes(facts.header.count * sizeof(float));
  output.record = {facts.header, decision.reply, decision.took_effect};
  if (decision.answer_version.has_value()) {
    answering().Answer(counting.CallOf(call, facts.header, decision), output);
  } else {
    output.answers.push_back({.call = call, .push = decision.reply});
  }
  // Others may have waited for the clock of this member.
  if (rules_.traits().keeps_pace) answering().ServeWaiting(output);
  SaveIfDue(output);
  return output;
}

void ShardMachine::OnPushAbandoned(PushId push, const PushHeader& header) {
  NoteArrival(header);
  OnDraftEnded(push);
  ReleaseBytes(header.count * sizeof(float));
}

void ShardMachine::OnDraftEnded(PushId push) { state_.intake.EndDraftOf(push); }

bool ShardMachine::OnCancelled(CallId call) { return state_.waiting.Cancel(call); }

void ShardMachine::NoteArrival(const PushHeader& header) {
  const Identity& identity = header.identity;
  if (header.count == 0 || IsComposite(header)) return;
  // The pushes of a worker that has left meanwhile are not counted.
  if (members().Find(identity.worker, identity.incarnation) == nullptr) return;
  uint32_t& arriving = state_.members.At(identity.worker).pushes_arriving;
  if (arriving > 0) --arriving;
}

bool ShardMachine::IsMadeUp(const Identity& identity) {
  return has_plan() && identity.run == state_.run.plan->run &&
         members().CheckMember(identity.worker, identity.incarnation) ==
             MemberTable::Verdict::kUnknownMember &&
         state_.unknown_members.IsMadeUp(identity.incarnation);
}

// Reports.

ShardOutput ShardMachine::OnPublished(Version version) {
  state_.versions.Publish(version, rules_.options().versions_kept);
  ShardOutput output;
  output.lagged = state_.reader_pulls.NoteLagging(oldest_kept());
  answering().ServeWaiting(output);
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
  answering().ServeWaiting(output);
  return output;
}

void ShardMachine::ReleaseBytes(uint64_t bytes) { state_.intake.Release(bytes); }

ShardOutput ShardMachine::OnProcessEnd(const EndedProcess& end) {
  Restore(Continued(std::move(state_), end));
  ShardOutput output;
  SaveIfDue(output);
  return output;
}

void ShardMachine::SaveIfDue(ShardOutput& output) {
  if (!rules_.options().saves || !is_initialized()) return;
  const bool is_round_empty = round().contributions() == 0;
  if (state_.saves.IsTime(decided(), is_round_empty, is_drained())) output.saves = true;
  if (output.saves) state_.saves.OnSaved(decided());
}

// For status and log.

uint32_t ShardMachine::round_size() const {
  return rules_.stage().consistency.round_size(static_cast<uint32_t>(view().members.size()));
}

MemberRecord::Newest ShardMachine::NewestOf(WorkerId worker, Incarnation incarnation) const {
  const MemberRecord* member = members().Find(worker, incarnation);
  return member != nullptr ? member->newest : MemberRecord::Newest();
}

void ShardMachine::CheckInvariants() const {
  members().CheckInvariants(rules_.options().gradients_in_flight);
  state_.versions.CheckInvariants(rules_.options().versions_kept);
  state_.reader_pulls.CheckInvariants(oldest_kept(), rules_.options().reader_pulls_max,
                                      rules_.options().versions_kept);
  if (const std::optional<PushIntake::Draft>& draft = state_.intake.draft()) {
    PS_CHECK(draft->forecast.from == decided() && published() == decided());
    PS_CHECK(round().contributions() == 0);
  }
  state_.waiting.CheckInvariants();
  const std::optional<AwaitedMembers>& awaited = state_.open.awaited;
  PS_CHECK(awaited.has_value() == rules_.traits().one_per_member);
  PS_CHECK(!awaited.has_value() || *awaited == AwaitedMembers(members(), round(), decided()));
}

}  // namespace slipstream
