#include "worker/client/retries.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "common/base/duration_text.h"
#include "common/log/log.h"
#include "common/process/steady_time.h"
#include "common/rpc/steady_deadline.h"

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

namespace {

// How often a wait checks whether the program is to stop.
constexpr absl::Duration kStopCheckInterval = absl::Milliseconds(20);

/// Waits for `wait`, or until a lost connection is established again. Returns false if the program
/// is to stop.
///
/// A plain sleep is not enough: a channel makes progress only while a thread waits on it (gRPC's
/// own thread serves it only every five seconds), so a peer that is back would be noticed late.
bool PauseOrReconnect(grpc::Channel& channel, absl::Duration wait, const Sleeper& sleeper) {
  // The connection works: the peer itself refused the call.
  if (channel.GetState(/*try_to_connect=*/true) == GRPC_CHANNEL_READY) return sleeper(wait);
  const absl::Time end = SteadyNow() + wait;
  for (;;) {
    if (!sleeper(absl::ZeroDuration())) return false;
    const absl::Time now = SteadyNow();
    if (now >= end) return true;
    if (channel.WaitForConnected(SteadyDeadline(std::min(end, now + kStopCheckInterval)))) {
      return true;
    }
  }
}

}  // namespace

Retries::Retries(const CalledPeer& peer, const RetryOptions& options, uint64_t seed,
                 const Sleeper& sleeper)
    : peer_(peer), options_(options), seed_(seed), sleeper_(sleeper), begin_(options.now()) {}

absl::Status Retries::Persist(absl::FunctionRef<absl::Status()> call) {
  for (;;) {
    Begin();
    const absl::Status status = call();
    if (status.ok()) OnReached();
    if (status.ok() || !IsTransient(status)) return status;
    if (absl::Status over = Await(status); !over.ok()) return over;
  }
}

void Retries::OnReached() {
  if (!schedule_.has_value()) return;
  schedule_.reset();
  has_warned_ = false;
  LogInfo("answers again", {{"peer", peer_.name}});
}

absl::Status Retries::Await(const absl::Status& failure) {
  if (!sleeper_(absl::ZeroDuration())) return absl::CancelledError("stopped");
  // A try this long was not an attempt to connect: the peer waited for a gradient or a round.
  const bool took_long = options_.now() - begin_ >= options_.give_up_after;
  if (took_long && !absl::IsDeadlineExceeded(failure)) OnReached();
  const bool is_first = !schedule_.has_value();
  if (is_first) {
    schedule_.emplace(options_, seed_);
    failing_since_ = options_.now();
  }
  const std::string reason(failure.message());
  const char* const what =
      absl::IsResourceExhausted(failure) ? "has too much to do" : "cannot be reached";
  const std::optional<absl::Duration> wait = schedule_->Next(failure);
  if (!wait) return schedule_->GivenUp(failure, fmt::format("{} {}: {}", peer_.name, what, reason));
  if (is_first) {
    LogInfo("waiting until it is ready", {{"peer", peer_.name}, {"reason", reason}});
  } else if (!has_warned_ && options_.now() - failing_since_ >= kUsualStart) {
    has_warned_ = true;
    LogWarning(fmt::format("{}, trying again", what),
               {{"peer", peer_.name},
                {"for_seconds", absl::ToDoubleSeconds(options_.give_up_after)},
                {"reason", reason}});
  }
  return Pause(*wait);
}

absl::Status Retries::AwaitFor(absl::Duration wait) {
  OnReached();
  return Pause(wait);
}

absl::Status Retries::Pause(absl::Duration wait) {
  const bool goes_on = PauseOrReconnect(*peer_.channel, wait, sleeper_);
  return goes_on ? absl::OkStatus() : absl::CancelledError("stopped");
}

}  // namespace slipstream
