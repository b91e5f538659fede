#ifndef SLIPSTREAM_SERVER_STATUS_STEP_TIMES_H_
#define SLIPSTREAM_SERVER_STATUS_STEP_TIMES_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <utility>

#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/protocol/view.h"

namespace slipstream {

/// Measures how long each member needs for a step, as a shard sees it: from when the member was
/// given weights to train with until the gradient computed from them has come, including the
/// network both ways. The time that a member waits for others is not included, so the figures
/// differ even where workers step together.
///
/// It keeps only members, and a bounded number of steps of each.
///
/// Not thread-safe: one owner, which serialises calls.
class StepTimes {
 public:
  static constexpr size_t kWindowSteps = 32;

  /// How many versions are kept that a member was given and has not answered. Beyond that the
  /// oldest is forgotten.
  static constexpr size_t kVersionsKept = 4;

  struct Pace {
    /// The number of steps measured since the member joined.
    uint64_t steps = 0;

    /// The median of the last kWindowSteps of them; zero before the first.
    absl::Duration step;

    /// How long the member has had weights that it has not answered; zero if it has none.
    absl::Duration holding;

    /// How long ago it last asked, pushed or was answered; zero while it waits for an answer.
    absl::Duration idle;
  };

  /// Forgets workers that are not in the view, or are in it with another incarnation.
  void OnView(const View& view, absl::Time now);

  /// Notes that a member waits for weights to train with, or that it has pushed and waits for none.
  void OnAsked(WorkerId worker, absl::Time now);
  void OnPushed(WorkerId worker, absl::Time now);

  /// Notes that a member that will push has been given this version. Other workers are ignored.
  void OnServed(WorkerId worker, Version version, absl::Time now);

  /// Note that the member's gradient from this version has come, or its excuse for having none.
  void OnGradient(WorkerId worker, Version base, absl::Time now);
  void OnExcuse(WorkerId worker, Version base);

  /// Returns the pace of every member.
  std::map<WorkerId, Pace> Paces(absl::Time now) const;

 private:
  struct Member {
    Incarnation incarnation{};
    uint64_t steps = 0;
    std::deque<absl::Duration> window;
    std::deque<std::pair<Version, absl::Time>> unanswered;  // Oldest first.
    absl::Time last_act;
    bool waits = false;  // For an answer.
  };

  std::map<WorkerId, Member> members_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_STATUS_STEP_TIMES_H_
