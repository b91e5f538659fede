#ifndef SLIPSTREAM_SERVER_STATUS_TIME_COUNTS_H_
#define SLIPSTREAM_SERVER_STATUS_TIME_COUNTS_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"
#include "proto/shard_status.pb.h"

namespace slipstream {

/// Counts how long something takes, in buckets from 100 us to a minute.
///
/// Not thread-safe: one owner.
class TimeCounts {
 public:
  void Add(absl::Duration time) {
    const double seconds = absl::ToDoubleSeconds(time);
    const auto* const bound = std::ranges::lower_bound(kBounds, seconds);
    ++counts_[static_cast<size_t>(bound - kBounds.begin())];
    sum_seconds_ += seconds;
  }

  void Describe(v1::TimeHistogram& times) const {
    times.mutable_bounds()->Assign(kBounds.begin(), kBounds.end());
    times.mutable_counts()->Assign(counts_.begin(), counts_.end());
    times.set_sum_seconds(sum_seconds_);
  }

 private:
  static constexpr std::array<double, 12> kBounds = {0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03,
                                                     0.1,    0.3,    1,     3,     10,   60};

  std::array<uint64_t, kBounds.size() + 1> counts_ = {};
  double sum_seconds_ = 0;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_STATUS_TIME_COUNTS_H_
