#include "server/core/coordinator/run_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "common/base/duration_text.h"
#include "common/settings/policy_rows.h"

namespace slipstream {

void RunSteps::Advance(absl::Time now) {
  while (AdvanceOnce(now)) {
  }
  PublishOrders(now);
}

bool RunSteps::AdvanceOnce(absl::Time now) {
  if (state_.phase.IsOver()) return false;
  state_.membership.KeepPlaces(questions_.KeepsPlaces());
  const absl::Duration timeout = state_.supply.timeout();
  const std::optional<ShardId> silent = state_.servers.FindSilent(timeout, now);
  if (silent.has_value()) {
    return Fail(fmt::format("the server of shard {} has not been heard for {}", Value(*silent),
                            DurationText(timeout)),
                now);
  }
  if (const std::optional<std::string> lost = state_.supply.WhyLost()) return Fail(*lost, now);
  if (state_.servers.AnyUnheard()) return false;  // No orders could tell of it.
  Stages& stages = state_.stages;
  if (!stages.is_open() && state_.servers.AllSeen(stages.announced_by()) &&
      !state_.recovery.AnyAway()) {
    stages.Open();
    ++state_.changes;
  }
  switch (state_.phase.phase()) {
    case Phase::kWaitingForServers:
      return AwaitServers(now);
    case Phase::kWaitingForWorkers:
      return AwaitWorkers(now);
    case Phase::kInitializing:
      return AwaitInitialWeights(now);
    case Phase::kTraining:
      return Train(now);
    case Phase::kDraining:
      return Drain(now);
    case Phase::kEvaluating:
      return Measure(now);
    case Phase::kFinished:
    case Phase::kFailed:
      break;
  }
  return false;
}

bool RunSteps::AwaitServers(absl::Time now) {
  if (questions_.AllServersThere()) {
    MoveTo(Phase::kWaitingForWorkers, now);
    return true;
  }
  const absl::Duration timeout = state_.supply.timeout();
  if (now - state_.phase.start() <= timeout) return false;
  if (state_.servers.AllSynced()) {
    return Fail(fmt::format("not all aggregators came within {}; missing: {}",
                            DurationText(timeout), ListText(state_.aggregators.Missing())),
                now);
  }
  return Fail(fmt::format("no server came within {} for {}", DurationText(timeout),
                          state_.servers.Missing(state_.rules.addresses)),
              now);
}

bool RunSteps::AwaitWorkers(absl::Time now) {
  const WorkerSupply& supply = state_.supply;
  if (supply.AreThere()) {
    state_.membership.FoundView();
    MoveTo(Phase::kInitializing, now);
    FailIfNobodySaves(now);
    return true;
  }
  if (now - state_.phase.start() <= supply.timeout()) return false;
  return Fail(fmt::format("{} of {} workers came within {}; missing: {}{}",
                          state_.membership.live(), supply.to_start(),
                          DurationText(supply.timeout()), supply.MissingText(), supply.LastWords()),
              now);
}

bool RunSteps::AwaitInitialWeights(absl::Time now) {
  Initialization& initialization = state_.initialization;
  if (initialization.GrantNext()) {
    const Initialization::Grant& grant = *initialization.grant();
    state_.notes.Add(EventKind::kNone, false, "initialization granted",
                     {{"worker", Value(grant.holder.worker)}, {"grant", grant.number}});
    PublishOrders(now);
    initialization.OnAnnounced(state_.orders.number);
    return true;
  }
  // An aggregator that does not know the members yet would take no push.
  const Aggregators& aggregators = state_.aggregators;
  const uint64_t announced_by = initialization.announced_by();
  const absl::Duration lease = state_.rules.lease;
  const bool has_weights = questions_.HasInitialWeights();
  if (has_weights && aggregators.AllSeenOrSilent(announced_by, lease, now)) {
    state_.work.BeginStage(state_.stages, state_.membership);
    state_.phase.BeginTraining(now);
    MoveTo(Phase::kTraining, now);
    return true;
  }
  const absl::Duration timeout = state_.supply.timeout();
  if (now - state_.phase.since() <= timeout) return false;
  if (has_weights) {
    return Fail(
        fmt::format("not all aggregators learned the run's members within {}; missing: {}",
                    DurationText(timeout), ListText(aggregators.Behind(announced_by, lease, now))),
        now);
  }
  const std::string who =
      initialization.grant().has_value()
          ? fmt::format("worker {}", Value(initialization.grant()->holder.worker))
          : std::string("no worker");
  return Fail(fmt::format("the weights were not initialised within {}; {} holds the grant{}",
                          DurationText(timeout), who, state_.supply.LastWords()),
              now);
}

bool RunSteps::Train(absl::Time now) {
  RunWork& work = state_.work;
  Evaluations& evaluations = state_.evaluations;
  for (uint32_t epoch : evaluations.OnEpochs(work.EpochsDone(state_.stages))) NoteSkipped(epoch);
  if (!WorkIsDone()) EndWorkIfDue(now);
  if (WorkIsDone()) {
    if (work.IsLast(state_.stages)) work.EndComplete();
    MoveTo(Phase::kDraining, now);
    return true;
  }
  OrderSaveIfDue(now);
  if (state_.membership.live() == 0 && work.ends_early()) {
    // Work had ended before the workers were gone, so none is needed.
    MoveTo(Phase::kDraining, now);
    return true;
  }
  if (!work.ends_early()) {
    const auto lack = state_.supply.WhyNoTraining(state_.stages.present().consistency, now);
    if (lack.has_value()) return StopTraining(*lack, now);
  }
  if (evaluations.due()) {
    const auto evaluator = evaluations.Choose(state_.membership.LiveWorkers());
    if (evaluator.has_value()) AssignEvaluation(*evaluator, now);
  }
  return false;
}

bool RunSteps::Drain(absl::Time now) {
  const bool are_drained =
      state_.servers.AllDrained(state_.phase.announced_by()) && !state_.recovery.AnyAway();
  // A server that never comes back does not keep the run from failing.
  if (!state_.work.fails_for().empty()) return FailOnceSaved(are_drained, now);
  if (!are_drained) return false;
  if (!state_.work.ends()) {
    EnterNextStage(now);
    return true;
  }
  if (!state_.rules.is_measured) {
    MoveTo(Phase::kFinished, now);
    return true;
  }
  const auto replaced = state_.evaluations.OnLastUpdate(state_.work.EpochsDone(state_.stages));
  if (replaced.has_value()) NoteSkipped(*replaced);
  MoveTo(Phase::kEvaluating, now);
  return true;
}

bool RunSteps::Measure(absl::Time now) {
  Evaluations& evaluations = state_.evaluations;
  if (evaluations.final_done()) {
    const double loss = evaluations.results().back().test_loss;
    if (!std::isfinite(loss)) {
      state_.work.Diverge();
      return Fail(fmt::format("training diverged: the final weights give loss {}",
                              std::isnan(loss) ? "nan" : fmt::format("{}", loss)),
                  now);
    }
    if (const std::string why = evaluations.WhyNotSaved(); !why.empty()) {
      state_.notes.Add(EventKind::kEvaluation, true, "the trained weights were not saved",
                       {{"reason", why}});
    }
    MoveTo(Phase::kFinished, now);
    return true;
  }
  if (const auto lack = state_.supply.WhyNoMeasuring(now)) return Fail(*lack, now);
  if (state_.membership.live() == 0) return false;
  GiveUpLateEvaluator(now);
  if (!evaluations.due()) return false;
  const std::optional<WorkerId> evaluator = evaluations.Choose(state_.membership.LiveWorkers());
  if (!evaluator.has_value()) {
    return Fail(fmt::format("no worker measured the final weights within {}, though {} live",
                            DurationText(state_.supply.timeout()), state_.membership.live()),
                now);
  }
  AssignEvaluation(*evaluator, now);
  return false;
}

bool RunSteps::WorkIsDone() {
  // A report from before the stage tells that the shard had drained for the last one.
  const ServerReport& first = state_.servers.servers()[0]->report;
  const bool is_drained = state_.stages.works_in_rounds() && first.drained &&
                          first.orders_seen >= state_.phase.announced_by() &&
                          !state_.recovery.returns().IsAway(first);
  state_.work.SetDrained(is_drained ? std::optional(first.version) : std::nullopt);
  if (is_drained) {
    const uint64_t per_epoch = state_.work.per_epoch();
    const uint64_t epochs = (first.batches_of_rounds + per_epoch - 1) / per_epoch;
    state_.stages.ExtendTo(static_cast<uint32_t>(epochs));
  }
  return is_drained || (!state_.stages.works_in_rounds() && state_.work.UnitsAreDone());
}

void RunSteps::EndWorkIfDue(absl::Time now) {
  StopConditions::Facts facts = {.trained = state_.phase.TrainingTime(now)};
  if (!state_.evaluations.results().empty()) {
    facts.accuracy = state_.evaluations.results().back().test_accuracy;
  }
  if (const auto reason = state_.work.EndsEarly(facts)) EndWork(*reason);
}

void RunSteps::EndWork(EndReason reason, std::string fails_for) {
  state_.work.EndEarly(reason, std::move(fails_for));
  state_.notes.Add(EventKind::kPhase, false, "work ends",
                   {{"reason", Name(reason)}, {"steps", state_.work.Done(state_.stages)}});
  ++state_.changes;
  ++state_.journal_changes;
}

void RunSteps::OrderSaveIfDue(absl::Time now) {
  const Recovery::SaveStep step =
      state_.recovery.OrderSaveIfDue(state_.stages.works_in_rounds(), now);
  if (step.has_saved) ++state_.changes;
  if (!step.is_new) return;
  PublishOrders(now);
  state_.recovery.OnSaveAnnounced(state_.orders.number);
}

bool RunSteps::StopTraining(std::string why, absl::Time now) {
  // Where the run waits for the worker in whose place nobody came, it saves nothing more: to end
  // its rounds, it would have to make versions without that worker.
  if (!state_.recovery.saves() || questions_.PlacesAwaitedSince().has_value()) {
    return Fail(std::move(why), now);
  }
  state_.supply.AwaitNobody();
  EndWork(EndReason::kTooFewWorkers, std::move(why));
  return true;
}

bool RunSteps::FailOnceSaved(bool are_drained, absl::Time now) {
  const bool have_all = are_drained && state_.recovery.AllHaveSavedNewest();
  if (!have_all && now - state_.phase.since() <= state_.supply.timeout()) return false;
  const char* const outlook =
      have_all ? "; the last weights are saved: begin the next run with them "
                 "(training.start_from, or psctl checkpoint export and model.init)"
               : "; the last weights could not be saved (durability.directory)";
  return Fail(state_.work.fails_for() + outlook, now);
}

void RunSteps::NoteChange(uint32_t after_epoch, const std::string& by) {
  const RunStage& next = state_.stages.next();
  std::vector<LogField> fields = {{"policy", RowOf(next.consistency.policy).name},
                                  {"learning_rate", next.learning_rate},
                                  {"after_epoch", after_epoch}};
  if (!by.empty()) fields.emplace_back("by", by);
  state_.notes.Add(EventKind::kChange, false, "an operator changes the run", std::move(fields));
}

void RunSteps::EnterNextStage(absl::Time now) {
  Stages& stages = state_.stages;
  const bool is_same_policy = stages.next().consistency == stages.present().consistency;
  stages.EnterNext(state_.work.drained());
  const RunStage& present = stages.present();
  if (!present.begins_at_once) {
    state_.work.SetDrained(std::nullopt);
    state_.phase.TrainAgain(now);
  }
  state_.work.BeginStage(stages, state_.membership);
  state_.notes.Add(
      EventKind::kChange, false,
      is_same_policy ? "another learning rate takes over" : "another policy takes over",
      {{"policy", RowOf(present.consistency.policy).name},
       {"learning_rate", present.learning_rate},
       {"steps", state_.work.Done(stages)}});
  PublishOrders(now);
  stages.OnAnnounced(state_.orders.number);
  if (!present.begins_at_once) state_.phase.OnAnnounced(state_.orders.number);
}

void RunSteps::ReturnShards(const ServerReport& report, absl::Time now) {
  // A run that has finished may go on to serve its weights.
  const Phase phase = state_.phase.phase();
  if (phase < Phase::kTraining || phase == Phase::kFailed) return;
  const Recovery::Outcome outcome =
      state_.recovery.OnReport(report, state_.stages.works_in_rounds());
  if (!outcome.failure.empty() && !state_.phase.IsOver()) Fail(outcome.failure, now);
  if (outcome.returned.empty()) return;
  for (const Recovery::Returned& returned : outcome.returned) {
    if (returned.shard == ShardId{0}) state_.readers.OnReturn(returned.version);
    state_.notes.Add(EventKind::kCheckpoint, true, "shard returned to a checkpoint",
                     {{"shard", Value(returned.shard)},
                      {"generation", Value(returned.generation)},
                      {"version", Value(returned.version)},
                      {"versions_lost", returned.versions_lost}});
  }
  const bool trains_again = outcome.together.has_value() && GoBackTo(*outcome.together, now);
  PublishOrders(now);
  const uint64_t orders = state_.orders.number;
  state_.recovery.OnAnnounced(orders);
  if (!trains_again) return;
  state_.stages.OnAnnounced(orders);
  state_.phase.OnAnnounced(orders);
}

bool RunSteps::GoBackTo(const SavedVersion& version, absl::Time now) {
  if (state_.phase.IsOver()) return false;
  if (!state_.stages.CanGoOnFrom(version)) {
    return Fail(
        "a server was restarted, and the newest checkpoint that all shards have is of an earlier "
        "policy or learning rate of the run, to which workers cannot go back",
        now);
  }
  const Phase phase = state_.phase.phase();
  if (phase == Phase::kTraining || version.version == state_.work.drained()) return false;
  if (phase == Phase::kEvaluating) state_.evaluations.OnMoreUpdates();
  state_.stages.BeginAgain();
  state_.work.GoOn();
  state_.supply.AwaitNobody();
  state_.phase.TrainAgain(now);
  state_.notes.Add(EventKind::kPhase, true, "the run goes back to training",
                   {{"stage", state_.stages.at()}});
  return true;
}

void RunSteps::FailIfNobodySaves(absl::Time now) {
  // Later, the weights are worth more than the place, which an operator may yet mend.
  const Phase phase = state_.phase.phase();
  const bool has_just_begun =
      phase == Phase::kInitializing ||
      (phase == Phase::kTraining && state_.work.EpochsDone(state_.stages) == 0);
  if (!state_.rules.is_measured || !has_just_begun) return;
  const std::string why = state_.evaluations.WhyNobodySaves(state_.membership.LiveWorkers());
  if (!why.empty()) Fail("no worker can save the trained weights: " + why, now);
}

void RunSteps::AssignEvaluation(WorkerId worker, absl::Time now) {
  if (!state_.evaluations.Assign(worker)) return;
  state_.evaluations.OnHeard(now);
  ++state_.journal_changes;
  const Evaluations::Order& order = *state_.evaluations.open();
  state_.notes.Add(
      EventKind::kNone, false, "evaluation ordered",
      {{"worker", Value(order.worker)}, {"epoch", order.epoch}, {"final", order.is_final}});
}

void RunSteps::GiveUpLateEvaluator(absl::Time now) {
  Evaluations& evaluations = state_.evaluations;
  if (!evaluations.open().has_value()) return;
  // Nobody can measure while the weights of a shard are not there.
  if (state_.recovery.AnyAway()) evaluations.OnHeard(now);
  // Nothing waits for a result during training, so the limit counts from the start of this phase.
  const absl::Time waiting_since = std::max(evaluations.heard(), state_.phase.since());
  const absl::Duration timeout = state_.supply.timeout();
  if (now - waiting_since <= timeout) return;
  state_.notes.Add(EventKind::kEvaluation, true, "evaluation given up, as it did not get on",
                   {{"worker", Value(evaluations.open()->worker)},
                    {"for_seconds", absl::ToDoubleSeconds(timeout)}});
  evaluations.GiveUpHolder();
  ++state_.changes;
  ++state_.journal_changes;
}

void RunSteps::NoteSkipped(uint32_t epoch) {
  const std::optional<Evaluations::Order>& open = state_.evaluations.open();
  const std::string reason = open.has_value()
                                 ? fmt::format("the one of epoch {} still runs", open->epoch)
                                 : std::string("the final one takes its place");
  state_.notes.Add(EventKind::kEvaluation, false, "evaluation skipped",
                   {{"epoch", epoch}, {"reason", reason}});
}

void RunSteps::MoveTo(Phase phase, absl::Time now) {
  state_.phase.MoveTo(phase, now);
  AnnouncePhase(now);
}

bool RunSteps::Fail(std::string reason, absl::Time now) {
  state_.phase.Fail(std::move(reason), now);
  AnnouncePhase(now);
  return false;
}

void RunSteps::AnnouncePhase(absl::Time now) {
  const RunPhase& phase = state_.phase;
  std::vector<LogField> fields = {{"phase", Name(phase.phase())}};
  if (!phase.failure().empty()) fields.emplace_back("reason", phase.failure());
  state_.notes.Add(EventKind::kPhase, phase.phase() == Phase::kFailed, "the run's phase changes",
                   std::move(fields));
  PublishOrders(now);
  state_.phase.OnAnnounced(state_.orders.number);
}

void RunSteps::PublishOrders(absl::Time now) {
  // A server may show that the restored state is an older copy (RollbackGuard). Orders of it would
  // be numbered like others that the servers have had, and nobody could tell any more.
  const Phase phase = state_.phase.phase();
  if (state_.servers.AnyUnheard() && !state_.phase.IsOver()) return;
  ServerOrders& orders = state_.orders;
  const RunWork& work = state_.work;
  const bool may_exit = orders.may_exit || questions_.ServersMayExit(now);
  const bool may_hold_back = phase == Phase::kTraining && !work.ends();
  LagLimits awaited = may_hold_back ? state_.readers.Awaited() : LagLimits();
  const std::optional<Initialization::Grant>& grant = state_.initialization.grant();
  const uint64_t number = grant.has_value() ? grant->number : 0;
  const bool ends_work = state_.stages.works_in_rounds() && work.ends_early();
  const std::vector<RunStage>& stages = state_.stages.changed();
  const View& view = state_.membership.view();
  std::vector<ShardReturn> returns = state_.recovery.returns().orders();
  const SaveOrder& save = state_.recovery.save_order();
  if (orders.stages == stages && orders.stage == state_.stages.at() && orders.phase == phase &&
      orders.view.number == view.number && orders.grant == number && orders.may_exit == may_exit &&
      orders.ends_work == ends_work && orders.awaited_readers == awaited &&
      orders.returns == returns && orders.save == save) {
    return;
  }

  orders.stages = stages;
  orders.stage = state_.stages.at();
  orders.phase = phase;
  orders.failure = state_.phase.failure();
  orders.view = view;
  orders.grant = number;
  orders.initializer = grant.has_value() ? grant->holder : Identity{};
  orders.may_exit = may_exit;
  orders.ends_work = ends_work;
  orders.awaited_readers = std::move(awaited);
  orders.drain_version = work.drained().value_or(Version{});
  orders.returns = std::move(returns);
  orders.save = save;
  if (!orders.model.has_value() && grant.has_value()) {
    orders.model = state_.work.Plan(*state_.initialization.model());
  }
  ++orders.number;
  ++state_.changes;
  ++state_.journal_changes;
}

}  // namespace slipstream
