#ifndef SLIPSTREAM_COMMON_BASE_ALLOWANCE_H_
#define SLIPSTREAM_COMMON_BASE_ALLOWANCE_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/time/time.h"

namespace slipstream {

/// Bounds how often something happens that others, such as peers, bring about: so many times at
/// once, and so many in each second.
///
/// Not thread-safe: one owner.
class Allowance {
 public:
  Allowance(double at_once, double per_second)
      : at_once_(at_once), per_second_(per_second), left_(at_once) {}

  /// Returns how many were refused since the last one that was allowed, if another is allowed now;
  /// nothing if it is to be refused, too.
  std::optional<uint64_t> Take(absl::Time now) {
    // A clock that is set back takes nothing away.
    const double seconds = std::max(0.0, absl::ToDoubleSeconds(now - std::exchange(counted_, now)));
    left_ = std::min(at_once_, left_ + per_second_ * seconds);
    if (left_ < 1) {
      ++refused_;
      return std::nullopt;
    }
    left_ -= 1;
    return std::exchange(refused_, 0);
  }

 private:
  double at_once_;
  double per_second_;
  double left_;
  absl::Time counted_ = absl::InfinitePast();
  uint64_t refused_ = 0;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_BASE_ALLOWANCE_H_
