#ifndef SLIPSTREAM_SERVER_CORE_COORDINATOR_RUN_WORK_H_
#define SLIPSTREAM_SERVER_CORE_COORDINATOR_RUN_WORK_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <type_traits>

#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/settings/run_spec.h"
#include "server/core/coordinator/initialization.h"
#include "server/core/coordinator/membership.h"
#include "server/core/coordinator/stages.h"
#include "server/core/coordinator/stop_conditions.h"
#include "server/core/coordinator/work_ledger.h"
#include "server/core/orders.h"

namespace slipstream {

/// A worker's question for work.
struct WorkQuestion {
  /// The stage that it is in.
  uint32_t stage = 0;

  /// The newest unit that it knows of. A newer one, which it never got, is given again.
  std::optional<uint64_t> newest_unit = {};

  /// The newest generation of a shard that it knows.
  Generation generation{};

  /// See WorkLedger::HandOut.
  uint64_t batches_wanted = 1;
};

/// A worker's report of one of its units: the first `batches_done` mini-batches are done.
struct UnitReport {
  uint64_t unit = 0;
  uint64_t batches_done = 0;
};

/// How much work a run has, how much of it is done, and why it ends.
///
/// Work that comes in rounds is handed out by shard 0, which reports how much is done. Other work
/// is handed out here, in units.
///
/// Not thread-safe: one owner, which serialises calls.
class RunWork {
 public:
  explicit RunWork(const RunSpec& spec);

  /// Returns the orders of the model, from which on the amount of work is known.
  ModelOrders Plan(const Initialization::Model& model);

  /// Returns the number of mini-batches of the run; 0 before Plan, and so is that of an epoch.
  uint64_t total() const { return total_; }
  uint64_t per_epoch() const { return per_epoch_; }

  /// Has the work of the present stage handed out, if it comes in units. Where workers make the
  /// weights, the lowest live one gets all, and reports it. REQUIRES: Plan was called.
  void BeginStage(const Stages& stages, const Membership& members);

  /// Returns whether the present stage is the last one with work.
  bool IsLast(const Stages& stages) const { return End(stages.present()) == total_; }

  /// Takes what workers and shards say of the work that is done. TakeReports returns whether some
  /// was done that was not before.
  absl::StatusOr<bool> TakeReports(WorkerId worker, std::span<const UnitReport> reports);
  void TakeRounds(uint64_t batches) { batches_of_rounds_ = batches; }

  /// Notes at which version the last mini-batch of the stage is part of the weights, where work
  /// comes in rounds; nothing while it is not.
  void SetDrained(std::optional<Version> version) { drained_ = version; }
  std::optional<Version> drained() const { return drained_; }

  struct Given {
    WorkLedger::Unit unit;
    bool is_new = false;  // Else the worker was given it before, and never got it.
  };

  /// Returns work for a worker of the present stage, of `workers` live ones: the oldest unit that
  /// is newer than the newest that it knows, or else the next one. Nothing if there is none for it,
  /// or if others hand out the work.
  std::optional<Given> HandOut(WorkerId worker, const WorkQuestion& question, const Stages& stages,
                               uint32_t workers);

  /// Has others do what the worker has not. `pushed_end`: one more than the last mini-batch of
  /// which shards have its gradient. Mini-batches whose gradients the shards have reported are not
  /// done again, even if the worker had not reported them. Gradients that shards took since their
  /// last report are computed again, and then count twice.
  void Forget(WorkerId worker, uint64_t pushed_end);

  /// Takes back the units of a worker that pushes nothing more. Returns whether it had any.
  bool Release(WorkerId worker) { return ledger_.has_value() && ledger_->Release(worker); }

  /// Returns whether all units of the stage are done. False where work comes in rounds.
  bool UnitsAreDone() const { return ledger_.has_value() && ledger_->AllDone(); }

  /// Returns whether the worker has mini-batches to push. Where rounds hand them out, every worker
  /// has some while any are left.
  bool IsWorkOf(WorkerId worker, const Stages& stages) const;
  uint64_t Done(const Stages& stages) const;
  uint32_t EpochsDone(const Stages& stages) const;

  /// Returns why the work ends before its last mini-batch; nothing if it goes on or has ended.
  std::optional<EndReason> EndsEarly(const StopConditions::Facts& facts) const;

  /// Ends the work early: no more is handed out. `fails_for`: why the run fails once the shards
  /// have saved their last versions; empty if it does not.
  void EndEarly(EndReason reason, std::string fails_for = "");

  /// Ends the work with its last mini-batch, unless it has ended.
  void EndComplete();

  /// Names another reason for an end, which makes the run fail.
  void Diverge() { end_reason_ = EndReason::kDiverged; }

  /// Goes on with work that had come to its end, but not early: the shards went back to an earlier
  /// version.
  void GoOn();

  std::optional<EndReason> end_reason() const { return end_reason_; }
  bool ends() const { return end_reason_.has_value(); }
  bool ends_early() const { return ends_early_; }
  const std::string& fails_for() const { return fails_for_; }

  template <typename Archive, typename Self>
  static void Parts(Archive& archive, Self& self) {
    bool has_units = self.ledger_.has_value();
    archive(self.total_, self.per_epoch_, self.drained_, self.batches_of_rounds_, self.end_reason_,
            self.ends_early_, self.fails_for_, has_units);
    if (!has_units || self.per_epoch_ == 0) return;  // Units need the length of an epoch.
    if constexpr (!std::is_const_v<Self>) self.ledger_.emplace(0, self.per_epoch_, self.pushes_);
    archive(*self.ledger_);
  }

 private:
  uint64_t End(const RunStage& stage) const { return stage.BatchesEnd(per_epoch_, total_); }

  // Constant after construction.
  const uint32_t batch_size_;
  const WorkLedger::Pushes pushes_;
  const StopConditions stop_conditions_;
  const bool all_reduces_;  // PolicyTraits::workers_make_weights.

  uint64_t total_ = 0;
  uint64_t per_epoch_ = 0;

  // Set from the beginning of the first stage on whose work does not come in rounds.
  std::optional<WorkLedger> ledger_;
  std::optional<Version> drained_;

  // The number of mini-batches done in closed rounds that shard 0 has reported last. It stays while
  // shard 0 is away.
  uint64_t batches_of_rounds_ = 0;

  // Set when work ends, early or not. The orders announce only an early end.
  std::optional<EndReason> end_reason_;
  bool ends_early_ = false;
  std::string fails_for_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CORE_COORDINATOR_RUN_WORK_H_
