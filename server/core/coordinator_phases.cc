#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/base/duration_text.h"
#include "server/core/coordinator.h"

// The part of Coordinator that moves a run from phase to phase.

namespace slipstream {
namespace {

// One event causes fewer notes than this. A caller that does not take them loses the later ones.
constexpr size_t kNotesMax = 10'000;

// How many ids of missing workers a message lists.
constexpr uint32_t kMissingNamedMax = 16;

}  // namespace

void Coordinator::Advance(absl::Time now) {
  while (AdvanceOnce(now)) {
  }
  PublishOrders(now);
}

bool Coordinator::AdvanceOnce(absl::Time now) {
  if (IsOver()) return false;
  membership_.KeepPlaces(KeepsPlaces());
  const std::optional<ShardId> silent = servers_.FindSilent(start_timeout_, now);
  if (silent.has_value()) {
    return Fail(fmt::format("the server of shard {} has not been heard for {}", Value(*silent),
                            DurationText(start_timeout_)),
                now);
  }
  if (lost_.has_value()) return Fail(LostWorker(), now);
  if (servers_.AnyUnheard()) return false;  // No orders could tell of it.
  if (!stage_is_open_ && servers_.AllSeen(stage_orders_) && !AnyAway()) {
    stage_is_open_ = true;
    holds_work_ = false;
    ++changes_;
  }
  switch (phase_) {
    case Phase::kWaitingForServers:
      return AdvanceServers(now);
    case Phase::kWaitingForWorkers:
      return AdvanceWorkers(now);
    case Phase::kInitializing:
      return AdvanceInitialization(now);
    case Phase::kTraining:
      return AdvanceTraining(now);
    case Phase::kDraining:
      return AdvanceDraining(now);
    case Phase::kEvaluating:
      return AdvanceEvaluation(now);
    case Phase::kFinished:
    case Phase::kFailed:
      break;
  }
  return false;
}

bool Coordinator::AdvanceServers(absl::Time now) {
  if (AllServersThere()) {
    MoveTo(Phase::kWaitingForWorkers, now);
    return true;
  }
  if (now - start_ <= start_timeout_) return false;
  if (servers_.AllSynced()) {
    return Fail(fmt::format("not all aggregators came within {}; missing: {}",
                            DurationText(start_timeout_), ListText(aggregators_.Missing())),
                now);
  }
  return Fail(fmt::format("no server came within {} for {}", DurationText(start_timeout_),
                          servers_.Missing(addresses_)),
              now);
}

bool Coordinator::AdvanceWorkers(absl::Time now) {
  if (membership_.live() >= workers_to_start_) {
    membership_.FoundView();
    MoveTo(Phase::kInitializing, now);
    FailIfNobodySaves(now);
    return true;
  }
  if (now - start_ <= start_timeout_) return false;
  return Fail(
      fmt::format("{} of {} workers came within {}; missing: {}{}", membership_.live(),
                  workers_to_start_, DurationText(start_timeout_), MissingWorkers(), LastWords()),
      now);
}

bool Coordinator::AdvanceInitialization(absl::Time now) {
  if (initialization_.GrantNext()) {
    const Initialization::Grant& grant = *initialization_.grant();
    AddNote(false, "initialization granted",
            {{"worker", Value(grant.holder.worker)}, {"grant", grant.number}});
    PublishOrders(now);
    grant_orders_ = orders_.number;
    return true;
  }
  // An aggregator that does not know the members yet would take no push.
  const bool has_weights = HasInitialWeights();
  if (has_weights && aggregators_.AllSeenOrSilent(grant_orders_, lease_, now)) {
    MakeLedger();
    training_began_ = now;
    MoveTo(Phase::kTraining, now);
    return true;
  }
  if (now - phase_since_ <= start_timeout_) return false;
  if (has_weights) {
    return Fail(fmt::format("not all aggregators learned the run's members within {}; missing: {}",
                            DurationText(start_timeout_),
                            ListText(aggregators_.Behind(grant_orders_, lease_, now))),
                now);
  }
  const std::string who =
      initialization_.grant().has_value()
          ? fmt::format("worker {}", Value(initialization_.grant()->holder.worker))
          : std::string("no worker");
  return Fail(fmt::format("the weights were not initialised within {}; {} holds the grant{}",
                          DurationText(start_timeout_), who, LastWords()),
              now);
}

bool Coordinator::AdvanceTraining(absl::Time now) {
  for (uint32_t epoch : evaluations_.OnEpochs(epochs_done())) NoteSkipped(epoch);
  if (!WorkIsDone()) EndWorkIfDue(now);
  if (WorkIsDone()) {
    if (!end_reason_.has_value() && IsLastStage()) {
      end_reason_ = stop_conditions_.ReasonOfLastStep(orders_.model->batches_per_epoch);
    }
    MoveTo(Phase::kDraining, now);
    return true;
  }
  OrderSaveIfDue(now);
  if (membership_.live() == 0 && ends_early_) {
    // Work had ended before the workers were gone, so none is needed.
    MoveTo(Phase::kDraining, now);
    return true;
  }
  if (const std::optional<std::string> lack = LacksWorkers(now)) return StopTraining(*lack, now);
  if (evaluations_.due()) {
    const std::optional<WorkerId> evaluator = evaluations_.Choose(membership_.LiveWorkers());
    if (evaluator.has_value()) AssignEvaluation(*evaluator, now);
  }
  return false;
}

bool Coordinator::AdvanceDraining(absl::Time now) {
  const bool are_drained = servers_.AllDrained(phase_orders_) && !AnyAway();
  // A server that never comes back does not keep the run from failing.
  if (!stopped_for_.empty()) return FailOnceSaved(are_drained, now);
  if (!are_drained) return false;
  if (!end_reason_.has_value()) {
    EnterStage(stage_ + 1, now);
    return true;
  }
  if (!is_measured_) {
    MoveTo(Phase::kFinished, now);
    return true;
  }
  if (const auto replaced = evaluations_.OnLastUpdate(epochs_done())) NoteSkipped(*replaced);
  MoveTo(Phase::kEvaluating, now);
  return true;
}

uint64_t Coordinator::StageEnd(uint32_t stage) const {
  return stages_[stage].BatchesEnd(orders_.model->batches_per_epoch, batches_total());
}

void Coordinator::EnterStage(uint32_t stage, absl::Time now) {
  PS_CHECK(stage < stages_.size());
  const bool is_same_policy = stages_[stage].consistency == present().consistency;
  stage_begin_.reset();
  if (rounds_done_ && !stages_[stage].begins_at_once) stage_begin_ = drain_version_;
  stage_ = stage;
  stage_is_open_ = false;
  if (!present().begins_at_once) {
    holds_work_ = true;
    rounds_done_ = false;
    phase_ = Phase::kTraining;
    phase_since_ = now;
  }
  MakeLedger();
  AddNote(false, is_same_policy ? "another learning rate takes over" : "another policy takes over",
          {{"policy", RowOf(present().consistency.policy).name},
           {"learning_rate", present().learning_rate},
           {"steps", batches_done()}});
  PublishOrders(now);
  stage_orders_ = orders_.number;
  if (!present().begins_at_once) phase_orders_ = stage_orders_;
}

void Coordinator::MakeLedger() {
  if (works_in_rounds()) return;
  if (ledger_.has_value()) {
    ledger_->ExtendTo(StageEnd(stage_));
    return;
  }
  ledger_.emplace(StageEnd(stage_), orders_.model->batches_per_epoch, pushes_);
  if (stage_ > 0) ledger_->BeginAt(StageEnd(stage_ - 1));
  if (all_reduces_) ledger_->HandOutAll(membership_.LowestLive());
}

bool Coordinator::WorkIsDone() {
  // A report from before the stage tells that the shard had drained for the last one.
  const ServerReport& first = servers_.servers()[0]->report;
  rounds_done_ = works_in_rounds() && first.drained && first.orders_seen >= phase_orders_ &&
                 !returns_.IsAway(first);
  if (rounds_done_) {
    drain_version_ = first.version;
    // A change may have come to shard 0 when it was beyond the epoch that the stage was to end
    // with.
    const uint64_t per_epoch = orders_.model->batches_per_epoch;
    const uint64_t epochs = (first.batches_of_rounds + per_epoch - 1) / per_epoch;
    stages_[stage_].until_epoch =
        std::max(stages_[stage_].until_epoch, static_cast<uint32_t>(epochs));
  }
  return rounds_done_ || (!works_in_rounds() && ledger_->AllDone());
}

void Coordinator::EndWorkIfDue(absl::Time now) {
  if (end_reason_.has_value()) return;
  StopConditions::Facts facts = {.trained = TrainingTime(now)};
  if (!evaluations_.results().empty()) {
    facts.accuracy = evaluations_.results().back().test_accuracy;
  }
  if (const auto reason = stop_conditions_.EndsEarly(facts)) EndWork(*reason);
}

void Coordinator::EndWork(EndReason reason) {
  end_reason_ = reason;
  ends_early_ = true;
  if (ledger_.has_value()) ledger_->Close();
  AddNote(false, "work ends", {{"reason", Name(reason)}, {"steps", batches_done()}});
  ++changes_;
  ++journal_changes_;
}

absl::Status Coordinator::OnEndTraining(EndReason reason, absl::Time now) {
  if (absl::Status over = RefuseIfOver(); !over.ok()) return over;
  if (phase_ < Phase::kTraining) {
    return absl::FailedPreconditionError(
        fmt::format("training has not begun: the run is {}", Name(phase_)));
  }
  if (!end_reason_.has_value()) EndWork(reason);
  Advance(now);
  return absl::OkStatus();
}

void Coordinator::MoveTo(Phase phase, absl::Time now) {
  PS_CHECK(phase > phase_);
  phase_ = phase;
  phase_since_ = now;
  if (phase >= Phase::kEvaluating) trained_until_ = std::min(trained_until_, now);
  std::vector<LogField> fields = {{"phase", Name(phase)}};
  if (!failure_.empty()) fields.emplace_back("reason", failure_);
  AddNote(phase == Phase::kFailed, "the run's phase changes", std::move(fields));
  PublishOrders(now);
  phase_orders_ = orders_.number;
}

bool Coordinator::Fail(std::string reason, absl::Time now) {
  failure_ = std::move(reason);
  MoveTo(Phase::kFailed, now);
  return false;
}

std::string Coordinator::MissingWorkers() const {
  std::string missing;
  uint32_t named = 0;
  for (const WorkerId id : FindMissingWorkers()) {
    if (named++ == kMissingNamedMax) return missing + ", ...";
    missing += (missing.empty() ? "" : ", ") + std::to_string(Value(id));
  }
  return missing.empty() ? "none of the first ids" : "workers " + missing;
}

std::string Coordinator::LastWords() const {
  for (const auto& [id, worker] : membership_.workers()) {
    if (worker.failure.empty()) continue;
    return fmt::format("; worker {}: {}", Value(id), worker.failure);
  }
  return "";
}

bool Coordinator::ServersMayExit(absl::Time now) const {
  if (!exits_after_ || !IsOver() || membership_.live() > 0) return false;
  // Servers that are started again for a run that is over come to learn that it is.
  if (!servers_.AllHeard() && now - start_ <= start_timeout_) return false;
  // Readers take the last state, unless one is too long at something else.
  const bool readers_have_time = phase_ == Phase::kFinished && now - phase_since_ <= lease_;
  return !readers_have_time || !readers_.any_live();
}

void Coordinator::PublishOrders(absl::Time now) {
  // A server may show that the restored state is an older copy (CheckRollback). Orders of it would
  // be numbered like others that the servers have had, and nobody could tell any more.
  if (servers_.AnyUnheard() && !IsOver()) return;
  ServerOrders& orders = orders_;
  const bool may_exit = orders.may_exit || ServersMayExit(now);
  const bool may_hold_back = phase_ == Phase::kTraining && !end_reason_.has_value();
  LagLimits awaited = may_hold_back ? readers_.Awaited() : LagLimits();
  const std::optional<Initialization::Grant>& grant = initialization_.grant();
  const uint64_t number = grant.has_value() ? grant->number : 0;
  const bool ends_work = works_in_rounds() && ends_early_;
  static const std::vector<RunStage> kOfSettings;
  const std::vector<RunStage>& stages = has_changed_ ? stages_ : kOfSettings;
  std::vector<ShardReturn> returns = returns_.orders();
  const SaveOrder save = saves_.has_value() ? saves_->order() : SaveOrder();
  if (orders.stages == stages && orders.stage == stage_ && orders.phase == phase_ &&
      orders.view.number == membership_.view().number && orders.grant == number &&
      orders.may_exit == may_exit && orders.ends_work == ends_work &&
      orders.awaited_readers == awaited && orders.returns == returns && orders.save == save) {
    return;
  }

  orders.stages = stages;
  orders.stage = stage_;
  orders.phase = phase_;
  orders.failure = failure_;
  orders.view = membership_.view();
  orders.grant = number;
  orders.initializer = grant.has_value() ? grant->holder : Identity{};
  orders.may_exit = may_exit;
  orders.ends_work = ends_work;
  orders.awaited_readers = std::move(awaited);
  orders.drain_version = rounds_done_ ? drain_version_ : Version{};
  orders.returns = std::move(returns);
  orders.save = save;
  if (!orders.model.has_value() && grant.has_value()) orders.model = MakeModelOrders();
  ++orders.number;
  ++changes_;
  ++journal_changes_;
}

ModelOrders Coordinator::MakeModelOrders() const {
  const Initialization::Model& model = *initialization_.model();
  const uint64_t per_epoch = (model.data.examples + batch_size_ - 1) / batch_size_;
  return {.layout = model.layout,
          .shard_map = model.shard_map,
          .batches_total = stop_conditions_.Steps(per_epoch),
          .batches_per_epoch = per_epoch,
          .examples_per_epoch = model.data.examples};
}

void Coordinator::AddNote(bool is_warning, std::string text, std::vector<LogField> fields) {
  if (notes_.size() >= kNotesMax) return;
  notes_.push_back({is_warning, LogLine(std::move(text), std::move(fields))});
}

}  // namespace slipstream
