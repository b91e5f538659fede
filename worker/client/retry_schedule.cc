#include "worker/client/retry_schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "common/base/duration_text.h"

namespace slipstream {
namespace {

constexpr int kPatienceLeases = 3;

}  // namespace

absl::Duration MembersPatience(absl::Duration lease) {
  return std::max(RetryOptions().give_up_after, kPatienceLeases * lease);
}

std::optional<absl::Duration> RetrySchedule::Next(const absl::Status& failure) {
  const absl::Duration left = options_.give_up_after - (options_.now() - start_);
  if (left <= absl::ZeroDuration()) return std::nullopt;
  if (absl::IsResourceExhausted(failure)) wait_ = options_.wait_max;
  const absl::Duration wait = wait_ * (0.5 + 0.5 * random_.Unit());
  wait_ = std::min(wait_ * 2, options_.wait_max);
  return std::min(wait, left);
}

absl::Status RetrySchedule::GivenUp(const absl::Status& failure, absl::string_view message) const {
  const absl::Duration tried = absl::Trunc(options_.now() - start_, absl::Milliseconds(100));
  const std::string text =
      fmt::format("{} (tried for {})", std::string(message), DurationText(tried));
  return absl::IsResourceExhausted(failure) ? absl::ResourceExhaustedError(text)
                                            : absl::UnavailableError(text);
}

bool IsTransient(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kResourceExhausted:
    // gRPC reports these when a broken connection ends a stream.
    case absl::StatusCode::kUnknown:
    case absl::StatusCode::kCancelled:
      return true;
    default:
      return false;
  }
}

}  // namespace slipstream
