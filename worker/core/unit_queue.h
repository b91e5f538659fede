#ifndef SLIPSTREAM_WORKER_CORE_UNIT_QUEUE_H_
#define SLIPSTREAM_WORKER_CORE_UNIT_QUEUE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "common/protocol/batch_ranges.h"

namespace slipstream {

/// Mini-batches [first, first + batches) of the run-long sequence, handed out as one piece.
struct WorkUnit {
  uint64_t id = 0;
  uint64_t first = 0;
  uint64_t batches = 0;

  friend bool operator==(const WorkUnit&, const WorkUnit&) = default;
};

/// Mini-batches of a unit that have been pushed and answered.
struct UnitProgress {
  uint64_t id = 0;
  uint64_t batches_done = 0;

  friend bool operator==(const UnitProgress&, const UnitProgress&) = default;
};

/// The units of work a worker holds: those it works through and, so that it never waits for the
/// coordinator, the next. Policies without rounds hand out work this way.
///
/// Not thread-safe: one owner.
class UnitQueue {
 public:
  /// `depth`: pushes that may be under way at once. `quantum`: the mini-batches of one.
  /// REQUIRES: depth > 0, quantum > 0.
  explicit UnitQueue(uint32_t depth = 1, uint64_t quantum = 1) : depth_(depth), quantum_(quantum) {}

  /// Finished units that progress() still names; each is told at least once, since a request for
  /// work tells it too.
  static constexpr size_t kFinishedUnitsTold = 8;

  /// Without effect once it is known that no unit follows: this one was on its way. REQUIRES:
  /// wants_unit() when it was asked for, or nothing to do; `unit` is not empty.
  void Add(const WorkUnit& unit);

  /// There are no units after those added.
  void Close() { is_closed_ = true; }

  /// Of the mini-batches not done, only the oldest `under_way` will be, and no unit follows.
  void DropAllBut(uint64_t under_way);

  /// The mini-batches of the next push, while `ahead` older ones are under way: as many as one
  /// takes or as are at hand, at most kBatchRangesMax ranges. Empty if none is.
  BatchRanges batches(uint64_t ahead = 0) const;

  /// The oldest `count` mini-batches have been pushed and answered. REQUIRES: they are at hand.
  void Done(uint64_t count = 1);

  /// False once it is known that not more than `count` mini-batches are left, those under way
  /// included.
  bool has_more(uint64_t count = 1) const { return !is_closed_ || left() > count; }

  /// True while what is at hand is at most the pushes that may be under way and the one after them,
  /// and more may come.
  bool wants_unit() const;

  std::vector<UnitProgress> progress() const;

 private:
  /// Mini-batches at hand that are not done.
  uint64_t left() const;
  void FinishFirstIfDone();

  // Constant after construction.
  const uint32_t depth_;
  const uint64_t quantum_;

  std::deque<WorkUnit> units_;
  uint64_t done_ = 0;  // Of the first unit.
  bool is_closed_ = false;
  std::deque<UnitProgress> finished_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_CORE_UNIT_QUEUE_H_
