#ifndef SLIPSTREAM_SERVER_CORE_COORDINATOR_WORK_LEDGER_H_
#define SLIPSTREAM_SERVER_CORE_COORDINATOR_WORK_LEDGER_H_

#include <cstdint>
#include <map>
#include <optional>

#include "absl/status/status.h"
#include "common/base/ids.h"

namespace slipstream {

/// Keeps which mini-batches of a run are handed out to which worker, and which are done. It serves
/// the policies whose work does not come in rounds.
///
/// Work is handed out in units of max(1, remaining / 2λ) mini-batches of the current epoch, rounded
/// up to the mini-batches of whole pushes. Units are large at first, so that the coordinator is
/// rarely asked, and small towards the end, so that an epoch ends for all workers at about the same
/// time. A worker may ask for larger units, if it does several mini-batches while it waits for an
/// answer (over a busy link). It gets up to per_epoch / 2λ; in the last units of the work, so much
/// that it holds no more than remaining / λ, as others would wait for it.
/// Mini-batches that a dead worker had not finished are handed out again, before any new ones.
///
/// Invariants:
///  - every mini-batch is either not handed out, in exactly one unit, or done;
///  - once closed, nothing is handed out;
///  - a mini-batch that is done stays done;
///  - no unit but that of HandOutAll crosses the end of an epoch, and no worker holds more than
///    units_max().
///
/// Not thread-safe: one owner, which serialises calls.
class WorkLedger {
 public:
  /// The pushes of a worker.
  struct Pushes {
    /// The mini-batches of one push; the last push of an epoch may have fewer. REQUIRES: not 0.
    uint64_t batches = 1;
    /// The pushes that may be under way at once. REQUIRES: not 0.
    uint32_t in_flight = 1;
  };

  /// Mini-batches [first, first + batches) of the run-long sequence.
  struct Unit {
    uint64_t number = 0;
    uint64_t first = 0;
    uint64_t batches = 0;

    friend bool operator==(const Unit&, const Unit&) = default;
  };

  /// Hands out the mini-batches up to `end`. `per_epoch`: those of one epoch; the last epoch may be
  /// cut short. REQUIRES: per_epoch > 0.
  WorkLedger(uint64_t end, uint64_t per_epoch, Pushes pushes);

  /// For workers whose pushes have one mini-batch, one after another.
  WorkLedger(uint64_t end, uint64_t per_epoch) : WorkLedger(end, per_epoch, Pushes()) {}

  /// Counts all mini-batches before `begin` as done. REQUIRES: nothing was handed out; `begin` is
  /// where an epoch begins.
  void BeginAt(uint64_t begin);

  /// Goes on to hand out mini-batches, up to `end`. REQUIRES: `end` is not below the end so far.
  void ExtendTo(uint64_t end);

  /// The most units that a worker holds. A unit may be as small as one push, so a worker holds a
  /// unit for each push under way, one that is prefetched, and one more if asking takes long. With
  /// fewer, it would wait until its next report.
  size_t units_max() const { return size_t{pushes_.in_flight} + 2; }

  /// Hands out the next unit. Returns nothing if the worker holds enough, all are handed out, or
  /// the ledger is closed. Numbers rise from 1. `workers` is λ, the number of live workers;
  /// `wanted` the mini-batches that the worker does while it asks.
  std::optional<Unit> HandOut(WorkerId worker, uint32_t workers, uint64_t wanted = 1);

  /// Hands out all mini-batches in unit 1, to the worker that reports what all workers have done.
  /// REQUIRES: nothing was handed out.
  void HandOutAll(WorkerId worker);

  /// Returns the oldest unit of this worker with a number above `newest`: the worker never got it.
  std::optional<Unit> FindNewer(WorkerId worker, uint64_t newest) const;

  /// Records that the first `done` mini-batches of a unit are done. Reports may repeat and come out
  /// of order. A report of a unit that is not (or no longer) the worker's has no effect. Fails if
  /// the unit has fewer than `done` mini-batches.
  absl::Status Report(WorkerId worker, uint64_t unit, uint64_t done);

  /// Returns whether the worker has a unit that it has not finished.
  bool HoldsWork(WorkerId worker) const { return held_.contains(worker); }

  /// Records that the worker has done its units, in order, up to the mini-batch before `end`, even
  /// if it has not reported them. Has no effect if the worker holds no unit with that mini-batch.
  void ReportUpTo(WorkerId worker, uint64_t end);

  /// Takes back the mini-batches that this worker has not finished. Returns whether there were any.
  bool Release(WorkerId worker);

  /// Stops handing out work. Units that workers hold are finished, or taken back and never done.
  void Close() { is_closed_ = true; }

  uint64_t done() const { return done_; }

  /// Returns true once no further mini-batch will be done.
  bool AllDone() const { return done_ == end_ || (is_closed_ && held_.empty()); }

  /// The number of epochs, counted from the first without a gap, whose mini-batches are all done.
  uint32_t epochs_done() const { return epochs_done_; }

  template <typename Archive, typename Self>
  static void Parts(Archive& archive, Self& self) {
    archive(self.end_, self.next_, self.returned_, self.held_, self.last_unit_, self.is_closed_,
            self.done_, self.epochs_done_, self.done_of_epoch_);
  }

 private:
  struct Held {
    uint64_t first = 0;
    uint64_t batches = 0;
    uint64_t done = 0;

    template <typename Archive, typename Self>
    static void Parts(Archive& archive, Self& self) {
      archive(self.first, self.batches, self.done);
    }
  };
  using Units = std::map<uint64_t, Held>;

  /// Returns the number of mini-batches of the next new unit.
  uint64_t NextSize(WorkerId worker, uint64_t workers, uint64_t wanted) const;

  /// Returns the number of mini-batches that the worker holds and has not done.
  uint64_t Undone(WorkerId worker) const;
  void Count(uint64_t first, uint64_t batches);

  // Constant after construction.
  const uint64_t per_epoch_;
  const Pushes pushes_;

  uint64_t end_;

  // Mini-batches from here on were never handed out.
  uint64_t next_ = 0;

  // Mini-batches that were handed out and taken back: first → how many.
  std::map<uint64_t, uint64_t> returned_;

  std::map<WorkerId, Units> held_;
  uint64_t last_unit_ = 0;
  bool is_closed_ = false;

  uint64_t done_ = 0;
  uint32_t epochs_done_ = 0;

  // The number of done mini-batches, by epoch, from epoch epochs_done_ on.
  std::map<uint64_t, uint64_t> done_of_epoch_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CORE_COORDINATOR_WORK_LEDGER_H_
