#ifndef SLIPSTREAM_SERVER_CORE_COORDINATOR_WORK_LEDGER_H_
#define SLIPSTREAM_SERVER_CORE_COORDINATOR_WORK_LEDGER_H_

#include <cstdint>
#include <map>
#include <optional>

#include "absl/status/status.h"
#include "common/base/ids.h"

namespace slipstream {

/// Which mini-batches of a run are handed out to whom, and which are done; for the policies in
/// which workers do not keep step.
///
/// Work leaves in units of max(1, remaining / 2λ) mini-batches of the current epoch, rounded up to
/// what a worker takes for one push: large at first, so that the coordinator is rarely asked, and
/// small towards the end, so that an epoch ends for all at about the same time. What a dead worker
/// had not finished is handed out again, before anything new.
///
/// Invariants:
///  - every mini-batch is either not handed out, in exactly one unit, or done;
///  - once closed, nothing is handed out;
///  - a mini-batch that is done stays done;
///  - no unit crosses the end of an epoch, and no worker holds more than kUnitsPerWorkerMax.
///
/// Not thread-safe: one owner, which serialises calls.
class WorkLedger {
 public:
  /// One that runs, one prefetched.
  static constexpr size_t kUnitsPerWorkerMax = 2;

  /// Mini-batches [first, first + batches) of the run-long sequence.
  struct Unit {
    uint64_t number = 0;
    uint64_t first = 0;
    uint64_t batches = 0;

    friend bool operator==(const Unit&, const Unit&) = default;
  };

  /// Mini-batches of the whole run, and of one epoch; the last epoch may be cut short. `quantum`:
  /// those of one push; what is left of an epoch may be less.
  /// REQUIRES: per_epoch > 0, quantum > 0.
  WorkLedger(uint64_t total, uint64_t per_epoch, uint64_t quantum = 1);

  /// Hands out the next unit; nothing if the worker holds enough or all are handed out. Numbers
  /// rise from 1. `workers` is λ, the workers now live.
  std::optional<Unit> HandOut(WorkerId worker, uint32_t workers);

  /// The oldest unit of this worker with a number above `newest`: one whose answer it never got.
  std::optional<Unit> FindNewer(WorkerId worker, uint64_t newest) const;

  /// Records that the first `done` mini-batches of a unit are done. Reports may repeat and come out
  /// of order; those of units that are not (or no longer) the worker's have no effect. Fails if it
  /// is more than the unit has.
  absl::Status Report(WorkerId worker, uint64_t unit, uint64_t done);

  /// Whether the worker has a unit that it has not finished.
  bool HoldsWork(WorkerId worker) const { return held_.contains(worker); }

  /// Records that the worker has done its units in order up to the mini-batch before `end`, of
  /// which it may not have told. Without effect if it holds no unit with that mini-batch.
  void ReportUpTo(WorkerId worker, uint64_t end);

  /// Takes back what this worker has not finished. Returns whether there was anything.
  bool Release(WorkerId worker);

  /// Hands out nothing any more. What is held is finished, or taken back and never done.
  void Close() { is_closed_ = true; }

  uint64_t done() const { return done_; }

  /// No mini-batch will be done any more.
  bool AllDone() const { return done_ == total_ || (is_closed_ && held_.empty()); }

  /// Epochs of which every mini-batch is done, and all before them.
  uint32_t epochs_done() const { return epochs_done_; }

 private:
  struct Held {
    uint64_t first = 0;
    uint64_t batches = 0;
    uint64_t done = 0;
  };
  using Units = std::map<uint64_t, Held>;

  void Count(uint64_t first, uint64_t batches);

  // Constant after construction.
  const uint64_t total_;
  const uint64_t per_epoch_;
  const uint64_t quantum_;

  // Mini-batches from here on were never handed out.
  uint64_t next_ = 0;

  // Handed out once and taken back: first → mini-batches.
  std::map<uint64_t, uint64_t> returned_;

  std::map<WorkerId, Units> held_;
  uint64_t last_unit_ = 0;
  bool is_closed_ = false;

  uint64_t done_ = 0;
  uint32_t epochs_done_ = 0;

  // Done mini-batches of epochs from epochs_done_ on.
  std::map<uint64_t, uint64_t> done_of_epoch_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CORE_COORDINATOR_WORK_LEDGER_H_
