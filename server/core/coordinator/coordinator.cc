#include "server/core/coordinator/coordinator.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/settings/policy_rows.h"

namespace slipstream {
namespace {

std::vector<LogField> FieldsOf(const ServerReport& report) {
  return {{"shard", Value(report.shard)},
          {"address", report.address.substr(0, Servers::kAddressBytesMax)}};
}

std::vector<LogField> FieldsOf(const AggregatorReport& report) {
  return {{"group", report.group},
          {"shard", Value(report.shard)},
          {"address", report.address.substr(0, Servers::kAddressBytesMax)}};
}

}  // namespace

Coordinator::Coordinator(uint64_t run, const RunSpec& spec, absl::Time start)
    : state_(run, spec, start), last_observed_(start) {}

std::string Coordinator::Save() const { return state_.Save(last_observed_); }

absl::Status Coordinator::Restore(std::string_view bytes, absl::Time now, bool accepts_rollback) {
  if (accepts_rollback) state_.rollback.Accept();
  last_observed_ = now;
  return state_.Restore(bytes, now);
}

absl::Status Coordinator::OnServer(const ServerReport& report, absl::Time now) {
  if (absl::Status old = CheckRollback(report); !old.ok()) {
    NoteRefusal(report, old);
    return old;
  }
  for (const SavedVersion& saved : report.saved) {
    if (saved.stage < stages().size()) continue;
    return absl::InvalidArgumentError(
        fmt::format("saved: the run has stages 0 to {}, not {}", stages().size() - 1, saved.stage));
  }
  const bool lacked_some = state_.servers.AnyUnheard();
  const std::string before = state_.servers.AddressOf(report.shard);
  const absl::StatusOr<Servers::Arrival> arrival = state_.servers.Record(report, now);
  if (!arrival.ok()) {
    NoteRefusal(report, arrival.status());
    return arrival.status();
  }
  if (state_.recovery.keeps_log() && state_.servers.TakeNews(now)) ++state_.journal_changes;
  for (const ServerReport::Pushed& pushed : report.pushed) {
    state_.membership.RenewByPush(pushed.worker, pushed.incarnation, pushed.clock, now);
  }
  if (lacked_some && !state_.servers.AnyUnheard()) {
    ++state_.changes;
    ExpireLeases(now);
  }
  NoteArrival(report, *arrival, now);
  if (*arrival == Servers::Arrival::kReplaced && report.address != before) {
    state_.notes.Add(EventKind::kServer, false, "server moved",
                     {{"shard", Value(report.shard)}, {"from", before}, {"to", report.address}});
  }
  if (!report.failure.empty() && !state_.phase.IsOver()) {
    steps_.Fail(
        fmt::format("the server of shard {} cannot go on: {}", Value(report.shard), report.failure),
        now);
  }
  const ServerReport& newest = state_.servers.servers()[Value(report.shard)]->report;
  steps_.ReturnShards(newest, now);
  if (state_.servers.AllSynced()) {
    state_.recovery.TakeSaved(report.shard, state_.stages.works_in_rounds());
  }
  if (report.shard == ShardId{0} && !returns().IsAway(newest)) {
    state_.readers.OnNewest(newest.version, now);
    state_.work.TakeRounds(newest.batches_of_rounds);
  }
  steps_.Advance(now);
  return absl::OkStatus();
}

void Coordinator::NoteArrival(const ServerReport& report, Servers::Arrival arrival,
                              absl::Time now) {
  if (arrival == Servers::Arrival::kKnown) return;
  ++state_.journal_changes;
  const uint32_t shard = Value(report.shard);
  if (arrival == Servers::Arrival::kFirst) {
    state_.notes.Add(EventKind::kServer, false, "server synced",
                     {{"shard", shard}, {"address", report.address}});
    return;
  }
  state_.notes.Add(EventKind::kServer, true, "server replaced",
                   {{"shard", shard}, {"address", report.address}});
  if (phase() == Phase::kInitializing) {
    state_.initialization.Restart();
  } else if (phase() > Phase::kInitializing && !state_.phase.IsOver() && !state_.recovery.saves()) {
    steps_.Fail(fmt::format("the server of shard {} was restarted; its weights are lost, as the "
                            "run keeps no checkpoints (durability.level)",
                            shard),
                now);
  }
}

void Coordinator::NoteRefusal(const ServerReport& report, const absl::Status& reason) {
  state_.notes.AddRefusal("server refused", report.instance, FieldsOf(report), reason);
}

absl::StatusOr<Aggregators::Arrival> Coordinator::OnAggregator(const AggregatorReport& report,
                                                               absl::Time now) {
  if (report.orders_seen > state_.orders.number) {
    absl::Status other_run =
        absl::FailedPreconditionError("the aggregator follows orders of another run");
    NoteRefusal(report, other_run);
    return other_run;
  }
  const absl::StatusOr<Aggregators::Arrival> arrival = state_.aggregators.Record(report, now);
  if (!arrival.ok()) {
    NoteRefusal(report, arrival.status());
    return arrival.status();
  }
  const bool is_first = *arrival == Aggregators::Arrival::kFirst;
  if (is_first || *arrival == Aggregators::Arrival::kReplaced) {
    ++state_.journal_changes;
    state_.notes.Add(EventKind::kAggregator, !is_first,
                     is_first ? "aggregator came" : "aggregator replaced", FieldsOf(report));
  }
  steps_.Advance(now);
  return arrival;
}

void Coordinator::NoteRefusal(const AggregatorReport& report, const absl::Status& reason) {
  state_.notes.AddRefusal("aggregator refused", report.instance, FieldsOf(report), reason);
}

absl::StatusOr<Identity> Coordinator::OnRegister(const Applicant& applicant, absl::Time now) {
  if (absl::Status over = state_.phase.RefuseIfOver(); !over.ok()) return over;
  // The answer has the actual addresses of servers and aggregators, so the worker has to wait for
  // them.
  if (!state_.servers.AllSynced() || state_.servers.AnyUnheard()) {
    return absl::UnavailableError("waiting for the servers of " +
                                  state_.servers.Missing(state_.rules.addresses));
  }
  if (!state_.aggregators.AllReported()) {
    return absl::UnavailableError("waiting for the " + ListText(state_.aggregators.Missing()));
  }
  const absl::StatusOr<Membership::Registration> made = state_.supply.Register(
      applicant, now, state_.servers.MembersMax(), phase() > Phase::kWaitingForWorkers);
  if (!made.ok()) return made.status();
  ++state_.journal_changes;
  if (made->is_repeated) return Identity{state_.rules.run, made->worker, made->incarnation};
  if (made->fenced_older) OnGone(made->worker, made->older);
  state_.notes.Add(EventKind::kWorker, made->fenced_older,
                   made->fenced_older ? "worker registered again, its older incarnation is fenced"
                                      : "worker registered",
                   {{"worker", Value(made->worker)},
                    {"incarnation", Value(made->incarnation)},
                    {"takes_place", made->takes_place},
                    {"host", applicant.host},
                    {"process", applicant.process}});
  steps_.Advance(now);
  return Identity{state_.rules.run, made->worker, made->incarnation};
}

absl::StatusOr<Preparation> Coordinator::OnPrepareModel(const Identity& worker,
                                                        const std::optional<TensorLayout>& layout,
                                                        const Initialization::Data& data,
                                                        absl::Time now) {
  if (absl::Status live = state_.membership.Renew(worker, now); !live.ok()) return live;
  if (absl::Status over = state_.phase.RefuseIfOver(); !over.ok()) return over;
  const absl::Status agreed = layout.has_value()
                                  ? state_.initialization.Propose(worker, *layout, data)
                                  : state_.initialization.ProposeAgain(worker);
  if (!agreed.ok()) return agreed;
  // A worker names its layout once.
  if (layout.has_value()) ++state_.journal_changes;
  steps_.Advance(now);
  return AskModel(worker);
}

absl::Status Coordinator::OnFinishInitialization(const Identity& worker, uint64_t grant,
                                                 absl::Time now) {
  if (absl::Status live = state_.membership.Renew(worker, now); !live.ok()) return live;
  if (absl::Status finished = state_.initialization.Finish(worker, grant); !finished.ok()) {
    return finished;
  }
  ++state_.journal_changes;
  steps_.Advance(now);
  return absl::OkStatus();
}

absl::Status Coordinator::OnHeartbeat(const Identity& worker, std::span<const UnitReport> progress,
                                      absl::Time now) {
  if (absl::Status live = state_.membership.Renew(worker, now); !live.ok()) return live;
  if (absl::Status taken = TakeReports(worker.worker, progress); !taken.ok()) return taken;
  steps_.Advance(now);
  return absl::OkStatus();
}

absl::Status Coordinator::OnMeet(const Identity& worker, const std::string& contact,
                                 absl::Time now) {
  if (absl::Status live = state_.membership.Renew(worker, now); !live.ok()) return live;
  if (absl::Status over = state_.phase.RefuseIfOver(); !over.ok()) return over;
  if (absl::Status met = state_.supply.Meet(worker.worker, contact); !met.ok()) return met;
  if (!contact.empty()) ++state_.changes;
  return absl::OkStatus();
}

absl::Status Coordinator::OnDonePushing(const Identity& worker, absl::Time now) {
  if (absl::Status live = state_.membership.Renew(worker, now); !live.ok()) return live;
  if (!state_.work.Release(worker.worker)) return absl::OkStatus();
  ++state_.changes;
  ++state_.journal_changes;
  steps_.Advance(now);
  return absl::OkStatus();
}

absl::Status Coordinator::OnSpeed(const Identity& worker, double steps_per_second) {
  if (absl::Status live = state_.membership.Check(worker); !live.ok()) return live;
  return state_.speeds.has_value() ? state_.speeds->Report(worker.worker, steps_per_second)
                                   : absl::OkStatus();
}

void Coordinator::OnMeasured(const Identity& worker, uint64_t evaluation, uint64_t examples,
                             absl::Time now) {
  if (!state_.membership.Check(worker).ok()) return;
  state_.evaluations.OnMeasured(worker.worker, evaluation, examples, now);
}

absl::Status Coordinator::OnSaving(const Identity& worker, Saving saving, absl::Time now) {
  if (absl::Status live = state_.membership.Check(worker); !live.ok()) return live;
  if (saving.state == Saving::State::kCannot) {
    state_.notes.Add(EventKind::kEvaluation, true, "a worker cannot save weights",
                     {{"worker", Value(worker.worker)}, {"reason", saving.failure}});
  }
  state_.evaluations.OnSaving(worker.worker, std::move(saving));
  ++state_.journal_changes;
  // One that comes later does not end a run that has done work.
  if (state_.membership.workers().at(worker.worker).founding) steps_.FailIfNobodySaves(now);
  return absl::OkStatus();
}

absl::Status Coordinator::OnReport(const Identity& worker, uint64_t evaluation, Evaluation result,
                                   const std::string& weights_sha256, absl::Time now) {
  if (absl::Status live = state_.membership.Renew(worker, now); !live.ok()) return live;
  if (!result.model_file.empty()) {
    result.model_host = state_.membership.workers().at(worker.worker).host;
  }
  result.came = now;
  const std::string failure = result.model_failure;
  absl::Status reported =
      state_.evaluations.Report(worker.worker, evaluation, std::move(result), weights_sha256,
                                state_.membership.LiveWorkers());
  if (!reported.ok()) return reported;
  ++state_.journal_changes;
  if (!failure.empty()) {
    state_.notes.Add(EventKind::kEvaluation, true, "weights not saved",
                     {{"worker", Value(worker.worker)}, {"reason", failure}});
  }
  steps_.Advance(now);
  return absl::OkStatus();
}

absl::Status Coordinator::OnLeave(const Identity& worker, const std::string& failure,
                                  absl::Time now, bool ends_run,
                                  std::span<const UnitReport> progress) {
  if (absl::Status live = state_.membership.Check(worker); !live.ok()) return live;
  if (absl::Status taken = TakeReports(worker.worker, progress); !taken.ok()) return taken;
  state_.membership.Leave(worker, failure, now);
  std::vector<LogField> fields = {{"worker", Value(worker.worker)}};
  if (!failure.empty()) {
    fields.emplace_back("failure", state_.membership.workers().at(worker.worker).failure);
  }
  state_.notes.Add(EventKind::kWorker, !failure.empty(), "worker left", std::move(fields));
  OnGone(worker.worker, worker.incarnation);
  if (ends_run && !state_.phase.IsOver()) {
    state_.work.Diverge();
    steps_.Fail(fmt::format("worker {}: {}", Value(worker.worker),
                            state_.membership.workers().at(worker.worker).failure),
                now);
  }
  steps_.Advance(now);
  return absl::OkStatus();
}

void Coordinator::Observe(absl::Time now) {
  const absl::Duration gap = now - std::exchange(last_observed_, std::max(last_observed_, now));
  if (gap > state_.rules.lease / 2) {
    state_.notes.Add(EventKind::kState, true,
                     "this process stood still: leases and timeouts are extended",
                     {{"seconds", absl::ToDoubleSeconds(gap)}});
  } else if (!answers_are_held_) {
    return;
  }
  state_.Forgive(gap, now);
}

absl::StatusOr<uint64_t> Coordinator::OnReader(const ReaderReport& report, absl::Time now) {
  const size_t before = state_.readers.readers().size();
  const absl::StatusOr<uint64_t> number = state_.readers.OnReport(report, now);
  if (number.ok() && state_.readers.readers().size() != before) {
    state_.notes.Add(EventKind::kNone, false, report.leaves ? "reader left" : "reader came",
                     {{"reader", *number}, {"host", report.host}, {"name", report.name}});
  }
  // Shards hear of it at the next tick: a reader may report often.
  return number;
}

absl::Status Coordinator::OnEndTraining(EndReason reason, absl::Time now) {
  if (absl::Status over = state_.phase.RefuseIfOver(); !over.ok()) return over;
  if (absl::Status early = state_.phase.RefuseBeforeTraining(); !early.ok()) return early;
  if (!WorkEnds()) steps_.EndWork(reason);
  steps_.Advance(now);
  return absl::OkStatus();
}

absl::Status Coordinator::RefuseChange(const RunChange& change) const {
  if (absl::Status over = state_.phase.RefuseIfOver(); !over.ok()) return over;
  if (state_.servers.AnyUnheard()) {
    return absl::UnavailableError("the coordinator was restarted, and has yet to hear all servers");
  }
  if (absl::Status early = state_.phase.RefuseBeforeTraining(); !early.ok()) return early;
  if (WorkEnds() || phase() > Phase::kDraining) {
    return absl::FailedPreconditionError("training is ending: no gradient is left to change");
  }
  return state_.stages.RefuseChange(change);
}

absl::StatusOr<Coordinator::ChangeEffect> Coordinator::OnChange(const RunChange& change,
                                                                absl::Time now,
                                                                const std::string& by) {
  if (absl::Status refused = RefuseChange(change); !refused.ok()) return refused;
  if (state_.stages.Have(change)) return ChangeEffect();
  // Rounds need all shards at one version. So they end as at any end of a stage, with an epoch.
  const bool is_at_once = phase() == Phase::kTraining && !state_.stages.works_in_rounds();
  const uint32_t epoch = std::min(present().until_epoch, epochs_done() + 1);
  if (!is_at_once && epoch * state_.work.per_epoch() >= batches_total()) {
    return absl::FailedPreconditionError(
        fmt::format("the last epoch is under way, and under {} a change holds from the end of an "
                    "epoch on",
                    RowOf(present().consistency.policy).name));
  }
  ChangeEffect effect;
  if (!is_at_once) effect.after_epoch = epoch;
  absl::Status changed = state_.stages.Change(change, is_at_once, epoch);
  if (!changed.ok()) return changed;
  ++state_.journal_changes;
  steps_.NoteChange(effect.after_epoch.value_or(epochs_done()), by);
  if (is_at_once) steps_.EnterNextStage(now);
  steps_.Advance(now);
  return effect;
}

absl::Status Coordinator::RefuseSave() const {
  if (absl::Status over = state_.phase.RefuseIfOver(); !over.ok()) return over;
  if (!state_.recovery.saves()) {
    return absl::FailedPreconditionError(
        "the servers of this run make no checkpoints, as durability.level is memory");
  }
  if (absl::Status early = state_.phase.RefuseBeforeTraining(); !early.ok()) return early;
  if (WorkEnds()) {
    return absl::FailedPreconditionError(
        "training is ending: each shard saves its last version by itself");
  }
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> Coordinator::OnSaveCheckpoint(uint64_t number, absl::Time now) {
  if (absl::Status refused = RefuseSave(); !refused.ok()) return refused;
  const uint64_t awaited = state_.recovery.AwaitSave(number);
  steps_.Advance(now);
  return awaited;
}

absl::StatusOr<SaveProgress> Coordinator::AskSave(uint64_t number) const {
  if (absl::Status refused = RefuseSave(); !refused.ok()) return refused;
  return state_.recovery.ProgressOf(number, state_.stages.works_in_rounds());
}

void Coordinator::ExpireLeases(absl::Time now) {
  for (WorkerId worker : state_.membership.Expire(now)) {
    state_.notes.Add(
        EventKind::kWorker, true, "worker died",
        {{"worker", Value(worker)}, {"reason", state_.membership.workers().at(worker).failure}});
    OnGone(worker, state_.membership.workers().at(worker).incarnation);
  }
}

void Coordinator::Tick(absl::Time now) {
  Observe(now);
  state_.readers.Tick(now);
  if (!state_.servers.AnyUnheard()) ExpireLeases(now);  // Else orders could not tell of it.
  steps_.Advance(now);
}

absl::StatusOr<Preparation> Coordinator::AskModel(const Identity& worker) const {
  if (absl::Status live = state_.membership.Check(worker); !live.ok()) return live;
  if (absl::Status over = state_.phase.RefuseIfOver(); !over.ok()) return over;
  return questions_.PreparationFor(worker);
}

absl::StatusOr<std::string> Coordinator::AskContact(const Identity& worker, WorkerId other) const {
  if (absl::Status live = state_.membership.Check(worker); !live.ok()) return live;
  if (absl::Status over = state_.phase.RefuseIfOver(); !over.ok()) return over;
  return state_.supply.ContactOf(other);
}

absl::StatusOr<WorkAnswer> Coordinator::AskWork(const Identity& worker,
                                                const WorkQuestion& question) {
  if (absl::Status live = state_.membership.Check(worker); !live.ok()) return live;
  if (phase() == Phase::kFailed) return state_.phase.RefuseIfOver();
  const Stages& stages = state_.stages;
  WorkAnswer answer = {.generation = returns().NewestGeneration(),
                       .stage = stages.at(),
                       .policy = present().consistency.policy,
                       .since_stage = stages.Since()};
  // Shards may wait for a worker that has yet to learn of their stage, even when work ends. It
  // brings its gradient, or says that it rests, once it is in that stage.
  const bool is_behind = question.stage < stages.at() && phase() <= Phase::kDraining;
  // While shards may go back, workers whose rounds are over may have to do some of them again, or,
  // if work has ended meanwhile, the round that others have begun after the return.
  const bool may_go_back = state_.recovery.saves() && phase() <= Phase::kDraining &&
                           state_.recovery.ReturnsTogether(stages.works_in_rounds());
  if (may_go_back && question.stage == stages.at() && answer.generation > question.generation) {
    answer.state = WorkAnswer::State::kReturned;
    return answer;
  }
  if (WorkEnds() && !is_behind && !may_go_back) {
    answer.state = WorkAnswer::State::kFinished;
    return answer;
  }
  // A restored state may hand out work that has been done (RollbackGuard).
  const bool hands_out =
      phase() >= Phase::kTraining && !stages.holds_work() && !state_.servers.AnyUnheard();
  if (!hands_out) return answer;
  if (is_behind && stages.is_open()) {
    answer.state = WorkAnswer::State::kStage;
    return answer;
  }
  // A worker that has yet to reach the stage from which on gradients count gets nothing.
  if (question.stage < answer.since_stage || phase() > Phase::kTraining) return answer;
  const std::optional<RunWork::Given> given =
      state_.work.HandOut(worker.worker, question, stages, state_.membership.live());
  if (!given.has_value()) return answer;
  if (given->is_new) ++state_.journal_changes;
  answer.state = WorkAnswer::State::kUnit;
  answer.unit = given->unit;
  return answer;
}

absl::Status Coordinator::TakeReports(WorkerId worker, std::span<const UnitReport> reports) {
  const absl::StatusOr<bool> is_more = state_.work.TakeReports(worker, reports);
  if (!is_more.ok()) return is_more.status();
  // A worker that held enough may now be given more.
  if (*is_more) ++state_.changes;
  return absl::OkStatus();
}

void Coordinator::OnGone(WorkerId worker, Incarnation gone) {
  state_.initialization.Forget(worker);
  state_.evaluations.Forget(worker);
  if (state_.speeds.has_value()) state_.speeds->Forget(worker);
  state_.work.Forget(worker, state_.servers.PushedEnd(worker, gone));
  const bool is_needed = phase() == Phase::kInitializing ||
                         (phase() == Phase::kTraining && !state_.work.UnitsAreDone());
  state_.supply.OnGone(worker, is_needed);
  ++state_.changes;
  ++state_.journal_changes;
}

absl::Status Coordinator::CheckRollback(const ServerReport& report) {
  const absl::StatusOr<uint64_t> behind = state_.rollback.OrdersBehind(report, state_.orders);
  if (!behind.ok()) return behind.status();
  if (*behind > 0) {
    // Servers heed only what has a higher number than they know. Each registration and each view
    // since had orders of its own.
    state_.orders.number += *behind;
    state_.membership.SkipNumbers(*behind + 1);
    ++state_.journal_changes;
    state_.notes.Add(EventKind::kState, true,
                     "goes on from an older state of the coordinator, as it was told to",
                     {{"orders_behind", *behind}});
  }
  const absl::StatusOr<std::optional<Version>> known =
      state_.rollback.ShardBehind(report, state_.servers);
  if (!known.ok() || !known->has_value()) return known.status();
  state_.servers.ForgetNewest(report.shard);
  ++state_.journal_changes;
  state_.notes.Add(EventKind::kServer, true,
                   "a shard goes on from an older state, as its server was told to",
                   {{"shard", Value(report.shard)},
                    {"version", Value(report.version)},
                    {"known", Value(**known)}});
  return absl::OkStatus();
}

}  // namespace slipstream
