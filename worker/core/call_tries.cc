#include "worker/core/call_tries.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "common/base/duration_text.h"

namespace slipstream {
namespace {

constexpr int kPatienceLeases = 3;

// A peer that is not there for this long may be starting, as in every run whose processes start
// together.
constexpr absl::Duration kUsualStart = absl::Seconds(5);

}  // namespace

absl::Duration MembersPatience(absl::Duration lease) {
  return std::max(RetryOptions().give_up_after, kPatienceLeases * lease);
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

bool CallTries::OnReached() {
  const bool was_failing = failing_.has_value();
  failing_.reset();
  return was_failing;
}

absl::StatusOr<Repetition> CallTries::OnFailure(const absl::Status& failure, absl::string_view peer,
                                                absl::Time now) {
  if (!IsTransient(failure)) return failure;
  // A try this long was not an attempt to connect: the peer waited for a gradient or a round.
  const bool took_long = now - begin_ >= options_.give_up_after;
  Repetition again = {.patience = options_.give_up_after};
  if (took_long && !absl::IsDeadlineExceeded(failure)) again.was_reached = OnReached();
  if (!failing_.has_value()) {
    failing_ = {.since = now, .next_wait = options_.first_wait, .random = RandomStream(seed_, 0)};
    again.news = Repetition::News::kFirst;
  } else if (now - failing_->since >= kUsualStart && !std::exchange(failing_->was_told, true)) {
    again.news = Repetition::News::kLong;
  }
  const bool is_busy = absl::IsResourceExhausted(failure);
  const absl::Duration left = options_.give_up_after - (now - failing_->since);
  if (left <= absl::ZeroDuration()) {
    const absl::Duration tried = absl::Trunc(now - failing_->since, absl::Milliseconds(100));
    return absl::Status(
        is_busy ? absl::StatusCode::kResourceExhausted : absl::StatusCode::kUnavailable,
        fmt::format("{} {}: {} (tried for {})", std::string(peer),
                    is_busy ? "has too much to do" : "cannot be reached",
                    std::string(failure.message()), DurationText(tried)));
  }
  if (is_busy) failing_->next_wait = options_.wait_max;
  const absl::Duration wait = failing_->next_wait * (0.5 + 0.5 * failing_->random.Unit());
  failing_->next_wait = std::min(failing_->next_wait * 2, options_.wait_max);
  again.wait = std::min(wait, left);
  return again;
}

}  // namespace slipstream
