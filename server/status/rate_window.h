#ifndef SLIPSTREAM_SERVER_STATUS_RATE_WINDOW_H_
#define SLIPSTREAM_SERVER_STATUS_RATE_WINDOW_H_

#include <cstdint>
#include <deque>
#include <utility>

#include "absl/time/time.h"

namespace slipstream {

/// Measures how fast a counter rises, over the last few seconds.
///
/// Not thread-safe: one owner.
class RateWindow {
 public:
  /// Notes the counter's value and returns its mean rise per second over the window.
  double Add(absl::Time now, uint64_t value) {
    samples_.emplace_back(now, value);
    while (samples_.size() > 2 && now - samples_[1].first >= kLength) samples_.pop_front();
    const auto& [since, first] = samples_.front();
    const double seconds = absl::ToDoubleSeconds(now - since);
    return seconds > 0 && value >= first ? static_cast<double>(value - first) / seconds : 0.0;
  }

 private:
  static constexpr absl::Duration kLength = absl::Seconds(3);

  std::deque<std::pair<absl::Time, uint64_t>> samples_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_STATUS_RATE_WINDOW_H_
