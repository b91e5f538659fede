#include "server/core/coordinator.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/run/policy_rows.h"
#include "common/run/shards.h"

namespace slipstream {
namespace {

// Bounds the notes: a server that is started again and again must not fill the memory.
constexpr size_t kRefusalsMax = 1000;

}  // namespace

Coordinator::Coordinator(uint64_t run, const RunSpec& spec, absl::Time start)
    : run_(run),
      workers_to_start_(spec.cluster.workers),
      batch_size_(spec.training.batch_size),
      pushes_{.batches = spec.worker.quantum(), .in_flight = spec.training.pipeline_depth},
      stop_conditions_(spec.training),
      lease_(spec.cluster.lease),
      start_timeout_(spec.cluster.start_timeout),
      waits_for_lost_(spec.cluster.on_worker_loss == ClusterSpec::OnWorkerLoss::kWait),
      workers_min_(spec.cluster.min_workers),
      is_measured_(spec.evaluation.by == EvaluationSpec::By::kWorkers),
      exits_after_(spec.run.after == RunControlSpec::After::kExit),
      keeps_log_(spec.durability.keeps_log()),
      has_one_publisher_(RowOf(spec.worker.algorithm).pushes == PushKind::kValues),
      all_reduces_(spec.workers_make_weights()),
      addresses_(spec.cluster.servers),
      membership_(run, spec.cluster.lease),
      servers_(static_cast<uint32_t>(spec.cluster.servers.size()), spec.cluster.lease),
      aggregators_(spec.cluster),
      initialization_(static_cast<uint32_t>(spec.cluster.servers.size()), CutOptionsOf(spec),
                      spec.fixed_examples()),
      evaluations_(is_measured_ ? spec.evaluation.every_epochs : 0,
                   is_measured_ ? spec.model_files.save_every_epochs : 0, spec.training.epochs),
      readers_(spec.cluster.lease, spec.readers.on_lag == ReadersSpec::OnLag::kWait),
      returns_(static_cast<uint32_t>(spec.cluster.servers.size())),
      stages_(StagesOf(spec)),
      phase_since_(start),
      start_(start),
      last_observed_(start) {
  orders_.run = run;
  orders_.number = 1;
  phase_orders_ = 1;
  if (spec.worker.steps_by_speed) speeds_.emplace(spec.worker.quantum());
  if (spec.durability.saves()) {
    saves_.emplace(spec.durability.interval, static_cast<uint32_t>(spec.cluster.servers.size()));
  }
}

absl::Status Coordinator::OnServer(const ServerReport& report, absl::Time now) {
  if (absl::Status old = CheckRollback(report); !old.ok()) {
    NoteRefusal(report, old);
    return old;
  }
  for (const SavedVersion& saved : report.saved) {
    if (saved.stage < stages_.size()) continue;
    return absl::InvalidArgumentError(
        fmt::format("saved: the run has stages 0 to {}, not {}", stages_.size() - 1, saved.stage));
  }
  const bool lacked_some = servers_.AnyUnheard();
  const std::string address = servers_.AddressOf(report.shard);
  const absl::StatusOr<Servers::Arrival> arrival = servers_.Record(report, now);
  if (!arrival.ok()) {
    NoteRefusal(report, arrival.status());
    return arrival.status();
  }
  if (keeps_log_ && servers_.TakeNews(now)) ++journal_changes_;
  for (const ServerReport::Pushed& pushed : report.pushed) {
    membership_.RenewByPush(pushed.worker, pushed.incarnation, pushed.clock, now);
  }
  if (lacked_some && !servers_.AnyUnheard()) {
    ++changes_;
    ExpireLeases(now);
  }
  NoteArrival(report, *arrival, now);
  if (*arrival == Servers::Arrival::kReplaced && report.address != address) {
    AddNote(false, "server moved",
            {{"shard", Value(report.shard)}, {"from", address}, {"to", report.address}});
  }
  if (!report.failure.empty() && !IsOver()) {
    Fail(
        fmt::format("the server of shard {} cannot go on: {}", Value(report.shard), report.failure),
        now);
  }
  const ServerReport& newest = servers_.servers()[Value(report.shard)]->report;
  TakeLife(newest, now);
  if (saves_.has_value() && servers_.AllSynced()) {
    saves_->OnReport(servers_, report.shard, returns_together());
  }
  if (report.shard == ShardId{0} && !returns_.IsAway(newest)) {
    readers_.OnNewest(newest.version, now);
    batches_of_rounds_ = newest.batches_of_rounds;
  }
  Advance(now);
  return absl::OkStatus();
}

void Coordinator::NoteArrival(const ServerReport& report, Servers::Arrival arrival,
                              absl::Time now) {
  if (arrival == Servers::Arrival::kKnown) return;
  ++journal_changes_;
  const uint32_t shard = Value(report.shard);
  if (arrival == Servers::Arrival::kFirst) {
    AddNote(false, "server synced", {{"shard", shard}, {"address", report.address}});
    return;
  }
  AddNote(true, "server replaced", {{"shard", shard}, {"address", report.address}});
  if (phase_ == Phase::kInitializing) {
    initialization_.Restart();
  } else if (phase_ > Phase::kInitializing && !IsOver() && !saves_.has_value()) {
    Fail(fmt::format("the server of shard {} was restarted; its weights are lost, as the run keeps "
                     "no checkpoints (durability.level)",
                     shard),
         now);
  }
}

void Coordinator::NoteRefusal(const ServerReport& report, const absl::Status& reason) {
  AddRefusal("server refused", report.instance,
             {{"shard", Value(report.shard)},
              {"address", report.address.substr(0, Servers::kAddressBytesMax)}},
             reason);
}

void Coordinator::AddRefusal(std::string text, uint64_t instance, std::vector<LogField> fields,
                             const absl::Status& reason) {
  if (refusals_.size() >= kRefusalsMax) return;
  const std::string message(reason.message());
  if (!refusals_.emplace(instance, message).second) return;
  fields.emplace_back("reason", message);
  AddNote(true, std::move(text), std::move(fields));
}

absl::StatusOr<Identity> Coordinator::OnRegister(const Applicant& applicant, absl::Time now) {
  if (absl::Status over = RefuseIfOver(); !over.ok()) return over;
  // The answer has the actual addresses of servers and aggregators, so the worker has to wait for
  // them.
  if (!servers_.AllSynced() || servers_.AnyUnheard()) {
    return absl::UnavailableError("waiting for the servers of " + servers_.Missing(addresses_));
  }
  if (!aggregators_.AllReported()) {
    return absl::UnavailableError("waiting for the " + ListText(aggregators_.Missing()));
  }
  const absl::StatusOr<Membership::Registration> made = Register(applicant, now);
  if (!made.ok()) return made.status();
  ++journal_changes_;
  if (made->is_repeated) return Identity{run_, made->worker, made->incarnation};
  if (made->fenced_older) OnGone(made->worker, made->older);
  AddNote(made->fenced_older,
          made->fenced_older ? "worker registered again, its older incarnation is fenced"
                             : "worker registered",
          {{"worker", Value(made->worker)},
           {"incarnation", Value(made->incarnation)},
           {"takes_place", made->takes_place},
           {"host", applicant.host},
           {"process", applicant.process}});
  Advance(now);
  return Identity{run_, made->worker, made->incarnation};
}

absl::StatusOr<Membership::Registration> Coordinator::Register(const Applicant& applicant,
                                                               absl::Time now) {
  const uint32_t places = servers_.MembersMax();
  if (all_reduces_) {
    // The ids are the places in the sums, and nobody joins those who have begun.
    if (applicant.worker.has_value() && Value(*applicant.worker) >= workers_to_start_) {
      return absl::InvalidArgumentError(
          fmt::format("worker {} is beyond cluster.workers, {}: under allreduce ids count from 0",
                      Value(*applicant.worker), workers_to_start_));
    }
    const bool is_open = phase_ <= Phase::kWaitingForWorkers;
    const uint32_t most = is_open ? workers_to_start_ : membership_.live();
    absl::StatusOr<Membership::Registration> made =
        membership_.Register(applicant, now, std::min(places, most));
    if (absl::IsResourceExhausted(made.status()) && most <= places) {
      return absl::ResourceExhaustedError(
          fmt::format("under allreduce a run has the {} workers that it begins with "
                      "(cluster.workers), and nobody joins them",
                      workers_to_start_));
    }
    return made;
  }
  const uint32_t members_max = has_one_publisher_ ? std::min(places, 1u) : places;
  absl::StatusOr<Membership::Registration> made = membership_.Register(applicant, now, members_max);
  if (absl::IsResourceExhausted(made.status()) && has_one_publisher_ && places > 0) {
    return absl::ResourceExhaustedError(
        "a run has one publisher, and it is there: wait until it has left, or until its lease is "
        "over");
  }
  return made;
}

absl::StatusOr<Coordinator::Preparation> Coordinator::OnPrepareModel(
    const Identity& worker, const std::optional<TensorLayout>& layout,
    const Initialization::Data& data, absl::Time now) {
  if (absl::Status live = membership_.Renew(worker, now); !live.ok()) return live;
  if (absl::Status over = RefuseIfOver(); !over.ok()) return over;
  const absl::Status agreed = layout.has_value() ? initialization_.Propose(worker, *layout, data)
                                                 : initialization_.ProposeAgain(worker);
  if (!agreed.ok()) return agreed;
  // A worker names its layout once.
  if (layout.has_value()) ++journal_changes_;
  Advance(now);
  return AskModel(worker);
}

absl::Status Coordinator::OnFinishInitialization(const Identity& worker, uint64_t grant,
                                                 absl::Time now) {
  if (absl::Status live = membership_.Renew(worker, now); !live.ok()) return live;
  if (absl::Status finished = initialization_.Finish(worker, grant); !finished.ok()) {
    return finished;
  }
  ++journal_changes_;
  Advance(now);
  return absl::OkStatus();
}

absl::Status Coordinator::OnHeartbeat(const Identity& worker, std::span<const Progress> progress,
                                      absl::Time now) {
  if (absl::Status live = membership_.Renew(worker, now); !live.ok()) return live;
  if (absl::Status taken = TakeProgress(worker, progress); !taken.ok()) return taken;
  Advance(now);
  return absl::OkStatus();
}

absl::Status Coordinator::OnMeet(const Identity& worker, const std::string& contact,
                                 absl::Time now) {
  if (absl::Status live = membership_.Renew(worker, now); !live.ok()) return live;
  if (absl::Status over = RefuseIfOver(); !over.ok()) return over;
  if (!all_reduces_) {
    return absl::FailedPreconditionError("workers meet only under consistency.policy allreduce");
  }
  if (contact.size() > kContactBytesMax) {
    return absl::InvalidArgumentError(
        fmt::format("a contact has at most {} bytes, not {}", kContactBytesMax, contact.size()));
  }
  if (contact.empty()) return absl::OkStatus();
  contacts_[worker.worker] = contact;
  ++changes_;
  return absl::OkStatus();
}

absl::Status Coordinator::OnDonePushing(const Identity& worker, absl::Time now) {
  if (absl::Status live = membership_.Renew(worker, now); !live.ok()) return live;
  if (!ledger_.has_value() || !ledger_->Release(worker.worker)) return absl::OkStatus();
  ++changes_;
  ++journal_changes_;
  Advance(now);
  return absl::OkStatus();
}

absl::Status Coordinator::OnSpeed(const Identity& worker, double steps_per_second) {
  if (absl::Status live = membership_.Check(worker); !live.ok()) return live;
  return speeds_.has_value() ? speeds_->Report(worker.worker, steps_per_second) : absl::OkStatus();
}

absl::Status Coordinator::OnReport(const Identity& worker, uint64_t evaluation, Evaluation result,
                                   const std::string& weights_sha256, absl::Time now) {
  if (absl::Status live = membership_.Renew(worker, now); !live.ok()) return live;
  if (!result.model_file.empty()) {
    result.model_host = membership_.workers().at(worker.worker).host;
  }
  const std::string failure = result.model_failure;
  absl::Status reported = evaluations_.Report(worker.worker, evaluation, std::move(result),
                                              weights_sha256, membership_.LiveWorkers());
  if (!reported.ok()) return reported;
  ++journal_changes_;
  if (!failure.empty()) {
    AddNote(true, "weights not saved", {{"worker", Value(worker.worker)}, {"reason", failure}});
  }
  Advance(now);
  return absl::OkStatus();
}

absl::Status Coordinator::OnLeave(const Identity& worker, const std::string& failure,
                                  absl::Time now, bool ends_run,
                                  std::span<const Progress> progress) {
  if (absl::Status live = membership_.Check(worker); !live.ok()) return live;
  if (absl::Status taken = TakeProgress(worker, progress); !taken.ok()) return taken;
  membership_.Leave(worker, failure, now);
  std::vector<LogField> fields = {{"worker", Value(worker.worker)}};
  if (!failure.empty()) {
    fields.emplace_back("failure", membership_.workers().at(worker.worker).failure);
  }
  AddNote(!failure.empty(), "worker left", std::move(fields));
  OnGone(worker.worker, worker.incarnation);
  if (ends_run && !IsOver()) {
    end_reason_ = EndReason::kDiverged;
    Fail(fmt::format("worker {}: {}", Value(worker.worker),
                     membership_.workers().at(worker.worker).failure),
         now);
  }
  Advance(now);
  return absl::OkStatus();
}

void Coordinator::Observe(absl::Time now) {
  const absl::Duration gap = now - std::exchange(last_observed_, std::max(last_observed_, now));
  if (gap > lease_ / 2) {
    AddNote(true, "this process stood still: leases and timeouts are extended",
            {{"seconds", absl::ToDoubleSeconds(gap)}});
  } else if (!answers_are_held_) {
    return;
  }
  membership_.Forgive(gap, now);
  servers_.Forgive(gap, now);
  aggregators_.Forgive(gap, now);
  start_ += gap;
  phase_since_ += gap;
  evaluation_heard_ += gap;
  readers_.Forgive(gap);
  if (deserted_since_.has_value()) *deserted_since_ += gap;
}

absl::StatusOr<uint64_t> Coordinator::OnReader(const ReaderReport& report, absl::Time now) {
  const size_t before = readers_.readers().size();
  const absl::StatusOr<uint64_t> number = readers_.OnReport(report, now);
  if (number.ok() && readers_.readers().size() != before) {
    AddNote(false, report.leaves ? "reader left" : "reader came",
            {{"reader", *number}, {"host", report.host}, {"name", report.name}});
  }
  // Shards hear of it at the next tick: a reader may report often.
  return number;
}

void Coordinator::ExpireLeases(absl::Time now) {
  for (WorkerId worker : membership_.Expire(now)) {
    AddNote(true, "worker died",
            {{"worker", Value(worker)}, {"reason", membership_.workers().at(worker).failure}});
    OnGone(worker, membership_.workers().at(worker).incarnation);
  }
}

void Coordinator::Tick(absl::Time now) {
  Observe(now);
  readers_.Tick(now);
  if (!servers_.AnyUnheard()) ExpireLeases(now);  // Else orders could not tell of it.
  Advance(now);
}

absl::StatusOr<Coordinator::Preparation> Coordinator::AskModel(const Identity& worker) const {
  if (absl::Status live = membership_.Check(worker); !live.ok()) return live;
  if (absl::Status over = RefuseIfOver(); !over.ok()) return over;
  Preparation answer;
  if (phase_ >= Phase::kTraining) {
    answer.state = Preparation::State::kReady;
    answer.shard_map = initialization_.model()->shard_map;
    return answer;
  }
  const std::optional<Initialization::Grant>& grant = initialization_.grant();
  if (phase_ == Phase::kInitializing && grant.has_value() && grant->holder == worker &&
      !initialization_.finished()) {
    answer.state = Preparation::State::kGranted;
    answer.grant = grant->number;
    answer.shard_map = initialization_.model()->shard_map;
    return answer;
  }
  if (phase_ == Phase::kWaitingForWorkers) {
    answer.message =
        fmt::format("{} of {} workers are there", membership_.live(), workers_to_start_);
  } else if (initialization_.finished()) {
    answer.message = "waiting for the servers to confirm the initial weights";
  } else if (grant.has_value()) {
    answer.message =
        fmt::format("worker {} sends the initial weights", Value(grant->holder.worker));
  }
  return answer;
}

absl::StatusOr<std::string> Coordinator::AskContact(const Identity& worker, WorkerId other) const {
  if (absl::Status live = membership_.Check(worker); !live.ok()) return live;
  if (absl::Status over = RefuseIfOver(); !over.ok()) return over;
  if (Value(other) >= workers_to_start_) {
    return absl::InvalidArgumentError(
        fmt::format("there is no worker {} among {}", Value(other), workers_to_start_));
  }
  const auto found = contacts_.find(other);
  return found == contacts_.end() ? std::string() : found->second;
}

absl::StatusOr<Coordinator::Work> Coordinator::AskWork(const Identity& worker, uint32_t stage,
                                                       std::optional<uint64_t> newest_unit,
                                                       Life life) {
  if (absl::Status live = membership_.Check(worker); !live.ok()) return live;
  if (phase_ == Phase::kFailed) return RefuseIfOver();
  Work answer = {.stage = stage_, .policy = present().consistency.policy, .since_stage = stage_};
  while (stages_[answer.since_stage].begins_at_once) --answer.since_stage;
  // Shards may wait for a worker that has yet to learn of their stage, even when work ends. It
  // brings its gradient, or says that it rests, once it is in that stage.
  const bool is_behind = stage < stage_ && phase_ <= Phase::kDraining;
  // While shards may go back, workers whose rounds are over may have to do some of them again, or,
  // if work has ended meanwhile, the round that others have begun after the return.
  const bool may_go_back = saves_.has_value() && returns_together() && phase_ <= Phase::kDraining;
  answer.life = returns_.NewestLife();
  if (may_go_back && stage == stage_ && answer.life > life) {
    answer.state = Work::State::kReturned;
    return answer;
  }
  if (WorkEnds() && !is_behind && !may_go_back) {
    answer.state = Work::State::kFinished;
    return answer;
  }
  // A restored state may hand out work that has been done (CheckRollback).
  if (phase_ < Phase::kTraining || holds_work_ || servers_.AnyUnheard()) return answer;
  if (is_behind && stage_is_open_) {
    answer.state = Work::State::kStage;
    return answer;
  }
  // It has yet to reach the stage from which on gradients count.
  if (stage < answer.since_stage) return answer;
  if (phase_ > Phase::kTraining || works_in_rounds() || all_reduces_) return answer;

  std::optional<WorkLedger::Unit> unit;
  if (newest_unit.has_value()) unit = ledger_->FindNewer(worker.worker, *newest_unit);
  if (!unit.has_value()) {
    unit = ledger_->HandOut(worker.worker, membership_.live());
    if (unit.has_value()) ++journal_changes_;
  }
  if (unit.has_value()) {
    answer.state = Work::State::kUnit;
    answer.unit = *unit;
  }
  return answer;
}

std::optional<Evaluations::Order> Coordinator::EvaluationFor(WorkerId worker) const {
  const std::optional<Evaluations::Order>& open = evaluations_.open();
  return open.has_value() && open->worker == worker ? open : std::nullopt;
}

std::optional<uint64_t> Coordinator::StepsFor(WorkerId worker) const {
  return speeds_.has_value() ? speeds_->StepsOf(worker) : std::nullopt;
}

bool Coordinator::ServersMayStop(absl::Time now) const {
  return orders_.may_exit && servers_.AllSeenOrSilent(orders_.number, lease_, now) &&
         aggregators_.AllSeenOrSilent(orders_.number, lease_, now);
}

std::vector<Coordinator::Note> Coordinator::TakeNotes() { return std::exchange(notes_, {}); }

uint64_t Coordinator::batches_total() const {
  return orders_.model.has_value() ? orders_.model->batches_total : 0;
}

bool Coordinator::HasWork(WorkerId worker) const {
  const bool is_handed_out = ledger_.has_value() && !all_reduces_;
  return is_handed_out ? ledger_->HoldsWork(worker) : batches_done() < batches_total();
}

uint64_t Coordinator::batches_done() const {
  if (ledger_.has_value()) return ledger_->done();
  if (rounds_done_ && !ends_early_) return StageEnd(stage_);
  return std::min(batches_total(), batches_of_rounds_);
}

uint32_t Coordinator::epochs_done() const {
  if (ledger_.has_value()) return ledger_->epochs_done();
  if (!orders_.model.has_value()) return 0;
  return static_cast<uint32_t>(batches_done() / orders_.model->batches_per_epoch);
}

absl::Duration Coordinator::TrainingTime(absl::Time now) const {
  if (training_began_ == absl::InfiniteFuture()) return absl::ZeroDuration();
  return std::min(now, trained_until_) - training_began_;
}

absl::Status Coordinator::RefuseIfOver() const {
  if (phase_ == Phase::kFinished) {
    return absl::OutOfRangeError("the run has finished: there is nothing left to do");
  }
  if (phase_ == Phase::kFailed) return absl::AbortedError("the run failed: " + failure_);
  return absl::OkStatus();
}

absl::Status Coordinator::TakeProgress(const Identity& worker, std::span<const Progress> progress) {
  if (!ledger_.has_value()) return absl::OkStatus();
  const uint64_t done_before = ledger_->done();
  for (const Progress& report : progress) {
    absl::Status taken = ledger_->Report(worker.worker, report.unit, report.batches_done);
    if (!taken.ok()) return taken;
  }
  // A worker that held enough may now be given more.
  if (ledger_->done() != done_before) ++changes_;
  return absl::OkStatus();
}

}  // namespace slipstream
