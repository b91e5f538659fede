#ifndef SLIPSTREAM_SERVER_STATUS_ROUND_CLOCK_H_
#define SLIPSTREAM_SERVER_STATUS_ROUND_CLOCK_H_

#include <cstdint>

#include "absl/time/time.h"
#include "common/base/ids.h"
#include "server/status/time_counts.h"

namespace slipstream {

/// Keeps when the open round began and when it last changed. Its owner tells it after every event,
/// because the core that decides about rounds has no clock.
///
/// Not thread-safe: one owner, which serialises calls.
class RoundClock {
 public:
  /// Notes that the round after version `decided` has heard from `heard` workers.
  void Observe(Version decided, uint32_t heard, absl::Time now) {
    const bool is_another = !is_running_ || decided != decided_;
    if (is_another && is_running_) closed_.Add(now - began_);
    if (is_another) began_ = now;
    if (is_another || heard != heard_) changed_ = now;
    is_running_ = true;
    decided_ = decided;
    heard_ = heard;
  }

  /// From the begin of a round to its close, of all rounds before this one.
  const TimeCounts& closed() const { return closed_; }

  /// How long the round has been open, and unchanged; zero before the first round is observed.
  absl::Duration open(absl::Time now) const { return Since(began_, now); }
  absl::Duration unchanged(absl::Time now) const { return Since(changed_, now); }

 private:
  absl::Duration Since(absl::Time time, absl::Time now) const {
    return is_running_ && now > time ? now - time : absl::ZeroDuration();
  }

  bool is_running_ = false;
  Version decided_{};
  uint32_t heard_ = 0;
  absl::Time began_;
  absl::Time changed_;
  TimeCounts closed_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_STATUS_ROUND_CLOCK_H_
