#include "deploy/psctl/node/status_follower.h"

#include <chrono>
#include <utility>

#include "deploy/psctl/status_stream.h"

namespace slipstream {
namespace {

constexpr absl::Duration kInterval = absl::Milliseconds(200);

// A coordinator that is silent for so long is asked anew, as one that is away is after a pause.
constexpr absl::Duration kPatience = absl::Seconds(2);
constexpr absl::Duration kPause = absl::Milliseconds(200);

}  // namespace

StatusFollower::StatusFollower(const std::string& coordinator,
                               const std::shared_ptr<grpc::ChannelCredentials>& credentials,
                               const StopSignal& stop)
    : client_(coordinator, credentials),
      stop_(stop),
      thread_([this](const std::stop_token& end) { Follow(end); }) {}

void StatusFollower::Follow(const std::stop_token& end) {
  while (!end.stop_requested() && !stop_.stopped()) {
    if (ReadStream(end)) return;
    stop_.WaitFor(kPause);
  }
}

bool StatusFollower::ReadStream(const std::stop_token& end) {
  const std::unique_ptr<StatusStream> stream = client_.Watch(kInterval, stop_);
  while (!end.stop_requested()) {
    absl::StatusOr<std::optional<v1::RunStatus>> status = stream->Next(kPatience);
    if (!status.ok() || !status->has_value()) return false;
    const bool is_over = (*status)->phase() >= v1::FINISHED;
    MutexLock lock(mutex_);
    newest_ = **std::move(status);
    is_over_ = is_over;
    has_news_.NotifyAll();
    if (is_over) return true;
  }
  return false;
}

std::optional<v1::RunStatus> StatusFollower::TakeNewest() {
  MutexLock lock(mutex_);
  return std::exchange(newest_, std::nullopt);
}

std::optional<v1::RunStatus> StatusFollower::AwaitLast(absl::Duration timeout) {
  const auto deadline = std::chrono::steady_clock::now() + absl::ToChronoMilliseconds(timeout);
  MutexLock lock(mutex_);
  while (!is_over_ && has_news_.WaitUntil(mutex_, deadline)) {
  }
  return std::exchange(newest_, std::nullopt);
}

}  // namespace slipstream
