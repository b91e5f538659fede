#ifndef SLIPSTREAM_DEPLOY_LAB_EVENT_QUEUE_H_
#define SLIPSTREAM_DEPLOY_LAB_EVENT_QUEUE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "absl/time/time.h"

namespace slipstream {

/// Virtual time and the events to come. Events of the same moment happen in the order in which they
/// were added, so a run depends on nothing but its seed.
///
/// Not thread-safe: one owner.
class EventQueue {
 public:
  using Event = std::function<void()>;

  absl::Time now() const { return now_; }
  uint64_t steps() const { return steps_; }

  void At(absl::Time time, Event event) {
    events_.emplace(std::pair(time < now_ ? now_ : time, next_++), std::move(event));
  }
  void After(absl::Duration delay, Event event) { At(now_ + delay, std::move(event)); }

  /// Runs the next event. Returns false if there is none.
  bool Step() {
    if (events_.empty()) return false;
    const auto first = events_.extract(events_.begin());
    now_ = first.key().first;
    ++steps_;
    first.mapped()();
    return true;
  }

 private:
  absl::Time now_ = absl::UnixEpoch();
  uint64_t next_ = 0;
  uint64_t steps_ = 0;
  std::map<std::pair<absl::Time, uint64_t>, Event> events_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_LAB_EVENT_QUEUE_H_
