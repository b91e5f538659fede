#ifndef SLIPSTREAM_SERVER_CORE_SHARD_MEMBER_PACE_H_
#define SLIPSTREAM_SERVER_CORE_SHARD_MEMBER_PACE_H_

#include <algorithm>
#include <optional>

#include "common/base/ids.h"
#include "common/policy/policy.h"

namespace slipstream {

/// The pace of the members at work, where pulls wait for members' clocks. A worker that begins to
/// work continues at the highest clock that the slowest has ever had: otherwise the others would
/// wait for it until it had caught up.
///
/// Not thread-safe: one owner.
class MemberPace {
 public:
  /// Notes the least clock of the members at work; nothing if there are none.
  void Note(std::optional<WorkerClock> slowest) {
    slowest_ = slowest;
    pace_ = std::max(pace_, slowest.value_or(pace_));
  }

  /// Returns the clock of a worker that names this one and was not at work.
  WorkerClock Entered(WorkerClock named) const { return std::max(named, pace_); }

  /// Notes that nobody is at work. All continue at this clock at least.
  void RestAll(WorkerClock at_least) {
    pace_ = std::max(pace_, at_least);
    slowest_.reset();
  }

  /// Returns the highest clock that a condition can have to be reduced now. `is_free`: as below.
  WorkerClock Reached(bool is_free) const;

  /// Reduces the condition to a version once the slowest member has reached the condition's clock.
  /// `is_free`: nobody waits for others any more.
  void Settle(PullCondition& condition, bool is_free, Version decided) const;

  template <typename Archive, typename Self>
  static void Parts(Archive& archive, Self& self) {
    archive(self.slowest_, self.pace_);
  }

 private:
  std::optional<WorkerClock> slowest_;
  WorkerClock pace_{};
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CORE_SHARD_MEMBER_PACE_H_
