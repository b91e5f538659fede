// The part of Coordinator that writes its state down and reads it again.

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "common/base/archive.h"
#include "server/core/coordinator.h"

namespace slipstream {

/// All that survives but the model's orders, which follow from the model, and the ledger, which
/// needs them. Times are left out: leases and timeouts begin anew. So are readers, speeds and
/// contacts, as all of them report again.
template <typename Archive, typename Self>
void Coordinator::Parts(Archive& archive, Self& self) {
  archive(self.membership_, self.servers_, self.aggregators_, self.initialization_,
          self.evaluations_, self.returns_, self.stages_, self.has_changed_, self.stage_,
          self.stage_is_open_, self.holds_work_, self.failure_, self.measured_, self.rounds_done_,
          self.drain_version_, self.stage_begin_, self.batches_of_rounds_, self.end_reason_,
          self.ends_early_, self.stopped_for_, self.orders_, self.grant_orders_, self.phase_orders_,
          self.stage_orders_);
}

std::string Coordinator::Save() const {
  std::optional<int64_t> trained;
  if (training_began_ != absl::InfiniteFuture()) {
    const absl::Time now = std::max(last_observed_, training_began_);
    trained = absl::ToInt64Nanoseconds(TrainingTime(now));
  }
  ArchiveWriter writer;
  writer(run_, phase_, orders_.may_exit);
  Parts(writer, *this);
  writer(trained, orders_.model.has_value(), ledger_.has_value(), saves_.has_value());
  if (ledger_.has_value()) writer(*ledger_);
  if (saves_.has_value()) writer(*saves_);
  return writer.Take();
}

absl::StatusOr<Coordinator::SavedRun> Coordinator::PeekAt(std::string_view bytes) {
  ArchiveReader reader(bytes);
  SavedRun saved = {.phase = Phase{}};
  bool may_exit = false;
  reader(saved.run, saved.phase, may_exit);
  if (!reader.ok() || saved.phase < Phase::kWaitingForServers || saved.phase > Phase::kFailed) {
    return absl::DataLossError("the coordinator's saved state is damaged");
  }
  saved.is_over = saved.phase == Phase::kFailed || (saved.phase == Phase::kFinished && may_exit);
  return saved;
}

absl::Status Coordinator::Restore(std::string_view bytes, absl::Time now, bool accepts_rollback) {
  accepts_rollback_ = accepts_rollback;
  const absl::StatusOr<SavedRun> saved = PeekAt(bytes);
  if (!saved.ok()) return saved.status();
  if (saved->run != run_) {
    return absl::FailedPreconditionError(fmt::format(
        "the coordinator's saved state is of run {:016x}, not {:016x}", saved->run, run_));
  }
  const absl::Status damaged = absl::DataLossError("the coordinator's saved state is damaged");
  ArchiveReader reader(bytes);
  uint64_t run = 0;
  bool may_exit = false;
  reader(run, phase_, may_exit);
  Parts(reader, *this);
  std::optional<int64_t> trained;
  bool has_model = false;
  bool has_ledger = false;
  bool has_saves = false;
  reader(trained, has_model, has_ledger, has_saves);
  const size_t shards = addresses_.size();
  const size_t aggregators = aggregators_.groups() * shards;
  if (!reader.ok() || servers_.servers().size() != shards || aggregators_.size() != aggregators ||
      returns_.shards().size() != shards || stage_ >= stages_.size() ||
      has_model > initialization_.model().has_value() || has_ledger > has_model ||
      has_saves != saves_.has_value()) {
    return damaged;
  }
  if (has_model) orders_.model = MakeModelOrders();
  if (has_ledger) reader(ledger_.emplace(0, orders_.model->batches_per_epoch, pushes_));
  if (has_saves) reader(*saves_);
  if (!reader.is_complete()) return damaged;

  orders_.may_exit = orders_.may_exit && !IsOver();  // Servers have to hear it from this process.
  start_ = phase_since_ = last_observed_ = evaluation_heard_ = now;
  if (trained.has_value()) training_began_ = now - absl::Nanoseconds(*trained);
  if (phase_ >= Phase::kEvaluating) trained_until_ = now;
  membership_.BeginLeases(now);
  servers_.OnRestored(now);
  aggregators_.OnRestored(now);
  return absl::OkStatus();
}

}  // namespace slipstream
