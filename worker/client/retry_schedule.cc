#include "worker/client/retry_schedule.h"

#include <algorithm>

namespace slipstream {

std::optional<absl::Duration> RetrySchedule::Next(absl::Time now) {
  const absl::Duration left = options_.give_up_after - (now - start_);
  if (left <= absl::ZeroDuration()) return std::nullopt;
  const absl::Duration wait = wait_ * (0.5 + 0.5 * random_.Unit());
  wait_ = std::min(wait_ * 2, options_.wait_max);
  return std::min(wait, left);
}

bool IsTransient(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    // gRPC's names for streams that their connection took along.
    case absl::StatusCode::kUnknown:
    case absl::StatusCode::kCancelled:
      return true;
    default:
      return false;
  }
}

}  // namespace slipstream
