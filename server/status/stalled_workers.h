#ifndef SLIPSTREAM_SERVER_STATUS_STALLED_WORKERS_H_
#define SLIPSTREAM_SERVER_STATUS_STALLED_WORKERS_H_

#include <map>
#include <span>
#include <vector>

#include "absl/time/time.h"
#include "common/base/ids.h"

namespace slipstream {

/// Finds the workers that live and yet do nothing: their heartbeats come from a thread of its own,
/// so a lease does not end where a program hangs, or waits for examples that never come.
///
/// A worker is idle from its last act: it fetched, pushed, asked for work, or told of examples that
/// it has computed or measured. A worker that waits for an answer is not idle. It is stalled if it
/// is idle for longer than its limit, which is the longest of
///  - Options::idle_min;
///  - twice the longest of its idle times so far, so that a worker that evaluates after each epoch
///    is named for that once at most;
///  - Options::first_idle_max, until it has pushed for the first time (the first step may compile),
///    and while it measures the weights.
///
/// Not thread-safe: one owner, which serialises calls.
class StalledWorkers {
 public:
  struct Options {
    absl::Duration idle_min;
    absl::Duration first_idle_max;
  };

  /// The facts about one live worker that has something to do.
  struct Sign {
    WorkerId worker{};
    Incarnation incarnation{};
    absl::Time last_act;
    bool has_pushed = false;
    bool measures = false;
  };

  /// A worker that is stalled from now on, or goes on after it was stalled.
  struct Change {
    WorkerId worker{};
    bool is_stalled = false;
    absl::Duration idle;
  };

  explicit StalledWorkers(const Options& options) : options_(options) {}

  /// Takes the signs of all live workers that have something to do, and forgets the others. Returns
  /// what has changed. A worker that was not known before is idle from `now` on.
  std::vector<Change> Update(std::span<const Sign> signs, absl::Time now);

  /// Returns how long the worker has been idle; zero if it is not known.
  absl::Duration IdleFor(WorkerId worker, absl::Time now) const;
  bool IsStalled(WorkerId worker) const;

 private:
  struct Member {
    Incarnation incarnation{};
    absl::Time last_act;
    absl::Duration longest_idle;
    bool is_stalled = false;
  };

  absl::Duration LimitOf(const Sign& sign, const Member& member) const;

  // Constant after construction.
  const Options options_;

  std::map<WorkerId, Member> members_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_STATUS_STALLED_WORKERS_H_
