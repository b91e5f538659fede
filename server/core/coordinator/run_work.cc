#include "server/core/coordinator/run_work.h"

#include <algorithm>
#include <utility>

namespace slipstream {

RunWork::RunWork(const RunSpec& spec)
    : batch_size_(spec.training.batch_size),
      pushes_{.batches = spec.worker.quantum(), .in_flight = spec.training.pipeline_depth},
      stop_conditions_(spec.training),
      all_reduces_(spec.workers_make_weights()) {}

ModelOrders RunWork::Plan(const Initialization::Model& model) {
  per_epoch_ = (model.data.examples + batch_size_ - 1) / batch_size_;
  total_ = stop_conditions_.Steps(per_epoch_);
  return {.layout = model.layout,
          .shard_map = model.shard_map,
          .batches_total = total_,
          .batches_per_epoch = per_epoch_,
          .examples_per_epoch = model.data.examples};
}

void RunWork::BeginStage(const Stages& stages, const Membership& members) {
  if (stages.works_in_rounds()) return;
  const uint64_t end = End(stages.present());
  if (ledger_.has_value()) {
    ledger_->ExtendTo(end);
    return;
  }
  ledger_.emplace(end, per_epoch_, pushes_);
  if (stages.at() > 0) ledger_->BeginAt(End(stages.all()[stages.at() - 1]));
  if (all_reduces_) ledger_->HandOutAll(members.LowestLive());
}

absl::StatusOr<bool> RunWork::TakeReports(WorkerId worker, std::span<const UnitReport> reports) {
  if (!ledger_.has_value()) return false;
  const uint64_t done_before = ledger_->done();
  for (const UnitReport& report : reports) {
    absl::Status taken = ledger_->Report(worker, report.unit, report.batches_done);
    if (!taken.ok()) return taken;
  }
  return ledger_->done() != done_before;
}

std::optional<RunWork::Given> RunWork::HandOut(WorkerId worker, const WorkQuestion& question,
                                               const Stages& stages, uint32_t workers) {
  if (stages.works_in_rounds() || all_reduces_) return std::nullopt;
  if (question.newest_unit.has_value()) {
    const std::optional<WorkLedger::Unit> lost = ledger_->FindNewer(worker, *question.newest_unit);
    if (lost.has_value()) return Given{.unit = *lost};
  }
  const std::optional<WorkLedger::Unit> next =
      ledger_->HandOut(worker, workers, question.batches_wanted);
  return next.has_value() ? std::optional(Given{.unit = *next, .is_new = true}) : std::nullopt;
}

void RunWork::Forget(WorkerId worker, uint64_t pushed_end) {
  if (!ledger_.has_value()) return;
  ledger_->ReportUpTo(worker, pushed_end);
  ledger_->Release(worker);
}

bool RunWork::IsWorkOf(WorkerId worker, const Stages& stages) const {
  const bool is_handed_out = ledger_.has_value() && !all_reduces_;
  return is_handed_out ? ledger_->HoldsWork(worker) : Done(stages) < total_;
}

uint64_t RunWork::Done(const Stages& stages) const {
  if (ledger_.has_value()) return ledger_->done();
  if (drained_.has_value() && !ends_early_) return End(stages.present());
  return std::min(total_, batches_of_rounds_);
}

uint32_t RunWork::EpochsDone(const Stages& stages) const {
  if (ledger_.has_value()) return ledger_->epochs_done();
  return per_epoch_ == 0 ? 0 : static_cast<uint32_t>(Done(stages) / per_epoch_);
}

std::optional<EndReason> RunWork::EndsEarly(const StopConditions::Facts& facts) const {
  return end_reason_.has_value() ? std::nullopt : stop_conditions_.EndsEarly(facts);
}

void RunWork::EndEarly(EndReason reason, std::string fails_for) {
  end_reason_ = reason;
  ends_early_ = true;
  fails_for_ = std::move(fails_for);
  if (ledger_.has_value()) ledger_->Close();
}

void RunWork::EndComplete() {
  if (!end_reason_.has_value()) end_reason_ = stop_conditions_.ReasonOfLastStep(per_epoch_);
}

void RunWork::GoOn() {
  drained_.reset();
  if (!ends_early_) end_reason_.reset();
}

}  // namespace slipstream
