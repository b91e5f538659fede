#ifndef SLIPSTREAM_WORKER_CORE_UNIT_QUEUE_H_
#define SLIPSTREAM_WORKER_CORE_UNIT_QUEUE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "common/protocol/batch_ranges.h"

namespace slipstream {

/// The mini-batches [first, first + batches) of the run-long sequence, handed out as one piece.
struct WorkUnit {
  uint64_t id = 0;
  uint64_t first = 0;
  uint64_t batches = 0;

  /// Set if the coordinator had none for a while: the wait for it tells nothing of the link.
  bool came_late = false;

  friend bool operator==(const WorkUnit&, const WorkUnit&) = default;
};

/// The number of a unit's mini-batches that have been pushed and answered.
struct UnitProgress {
  uint64_t id = 0;
  uint64_t batches_done = 0;

  friend bool operator==(const UnitProgress&, const UnitProgress&) = default;
};

/// The units of work that a worker holds: those in progress and the next one, so that the worker
/// never waits for the coordinator. Policies without rounds hand out work this way.
///
/// While a unit is on its way, the worker goes on with those at hand. Over a slow or busy link that
/// takes several pushes, and at the end of the work, where units are small, it would run out again
/// and again. So a queue that ran out asks earlier for the next units, and for larger ones, and
/// about as late as needed again once they come early.
///
/// Not thread-safe: one owner.
class UnitQueue {
 public:
  /// `depth`: the number of pushes that may be in flight at once. `quantum`: the number of
  /// mini-batches of one push. REQUIRES: depth > 0, quantum > 0.
  explicit UnitQueue(uint32_t depth = 1, uint64_t quantum = 1) : depth_(depth), quantum_(quantum) {}

  /// The number of finished units that progress() still lists. Each is reported at least once,
  /// because a request for work reports it too.
  static constexpr size_t kFinishedUnitsTold = 8;

  /// The most mini-batches that are asked for, however long an answer takes.
  static constexpr uint64_t kWantedMax = 64;

  /// Sets the number of mini-batches of the next pushes. REQUIRES: quantum > 0.
  void SetQuantum(uint64_t quantum) { quantum_ = quantum; }
  uint64_t quantum() const { return quantum_; }

  /// Adds a unit. Has no effect after Close or DropAllBut: the unit was on its way then. REQUIRES:
  /// when the unit was asked for, wanted() was not 0 or the queue was empty; `unit` is not empty.
  void Add(const WorkUnit& unit);

  /// Notes that no unit follows those added.
  void Close() { is_closed_ = true; }

  /// Drops all unfinished mini-batches except the oldest `under_way`, and notes that no unit
  /// follows.
  void DropAllBut(uint64_t under_way);

  /// Returns the mini-batches of the next push, while the `ahead` mini-batches before them are in
  /// flight: as many as a push takes or as are at hand, in at most kBatchRangesMax ranges. Empty if
  /// there are none.
  BatchRanges batches(uint64_t ahead = 0) const;

  /// Notes that the oldest `count` mini-batches have been pushed and answered. REQUIRES: they are
  /// at hand.
  void Done(uint64_t count = 1);

  /// False once it is known that at most `count` mini-batches are left, including those in flight.
  bool has_more(uint64_t count = 1) const { return !is_closed_ || left() > count; }

  /// The least number of mini-batches that the next unit should have, if one is to be asked for
  /// now; else 0. A unit is asked for when the mini-batches at hand last about as long as an answer
  /// takes: those in flight, one push more, and ahead_. `depth` units may be at hand then, and one
  /// more while ahead_ is above 0.
  uint64_t wanted() const;

  std::vector<UnitProgress> progress() const;

 private:
  /// The number of mini-batches at hand that are not done.
  uint64_t left() const;
  void FinishFirstIfDone();
  void LearnFromWait();

  // Constant after construction.
  const uint32_t depth_;

  uint64_t quantum_;
  std::deque<WorkUnit> units_;
  uint64_t done_ = 0;  // The number of done mini-batches of the first unit.
  bool is_closed_ = false;
  std::deque<UnitProgress> finished_;

  /// About the number of mini-batches that are done while a unit is on its way, beyond those of the
  /// pushes in flight and one more.
  uint64_t ahead_ = 0;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_CORE_UNIT_QUEUE_H_
