#include "deploy/psctl/status/watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>

#include "absl/time/clock.h"
#include "common/base/duration_text.h"
#include "common/process/exit_code.h"
#include "common/process/steady_time.h"
#include "common/process/stop_signal.h"
#include "deploy/psctl/complaint.h"
#include "deploy/psctl/operator_client.h"
#include "deploy/psctl/status/progress_view.h"
#include "deploy/psctl/status_stream.h"

namespace slipstream {
namespace {

// The longest silence of a connected coordinator, which may be busy, or of one that is not there.
constexpr absl::Duration kLatenessMax = absl::Seconds(5);
constexpr absl::Duration kFirstPatience = absl::Seconds(2);
constexpr absl::Duration kRetryPause = absl::Milliseconds(200);

bool IsAway(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
}

/// One call of FollowStatus.
class StatusWatch {
 public:
  StatusWatch(const FollowOptions& options,
              const std::shared_ptr<grpc::ChannelCredentials>& credentials, const StopSignal& stop)
      : stop_(stop),
        options_(options),
        client_(options.coordinator, credentials),
        last_answer_(SteadyNow()) {}

  int Watch() {
    absl::Status end;
    do {
      end = Follow();
    } while (IsAway(end) && WaitToRetry(end));
    if (stop_.stopped()) return stop_.ExitStatus();
    if (end.ok()) return static_cast<int>(how_it_ended_);
    return EndWithAdvice(client_.Explain(end, options_.wait));
  }

 private:
  /// Passes on the statuses of one call. Returns OK at the end of the run.
  absl::Status Follow() {
    const std::unique_ptr<StatusStream> stream = client_.Watch(options_.interval, stop_);
    absl::Duration patience = was_there_ ? kLatenessMax : kFirstPatience;
    std::optional<v1::RunStatus> last;
    while (true) {
      absl::StatusOr<std::optional<v1::RunStatus>> next = stream->Next(patience);
      if (!next.ok()) return next.status();
      if (!next->has_value()) break;
      OnAnswer();
      last = **std::move(next);
      options_.show(*last);
      patience = options_.interval + kLatenessMax;
    }
    if (!last.has_value()) return absl::OkStatus();
    how_it_ended_ = ExitCodeFor(FailureOf(*last));
    options_.end(*last);
    return absl::OkStatus();
  }

  void OnAnswer() {
    if (is_away_) {
      options_.note(was_there_ ? "psctl: the coordinator is there again"
                               : "psctl: the coordinator is there");
    }
    is_away_ = false;
    was_there_ = true;
    last_answer_ = SteadyNow();
  }

  /// Prints, once for each absence, what it waits for and until when. Returns false if another try
  /// is of no use.
  bool WaitToRetry(const absl::Status& reason) {
    const absl::Duration left = last_answer_ + options_.wait - SteadyNow();
    if (left <= absl::ZeroDuration()) return false;
    if (!is_away_) {
      const std::string until =
          absl::FormatTime("%H:%M:%S", absl::Now() + left, absl::LocalTimeZone());
      options_.note(fmt::format("psctl: {}; waiting for it until {} ({})",
                                std::string(client_.Explain(reason).message()), until,
                                DurationText(left)));
      is_away_ = true;
    }
    return !stop_.WaitFor(std::min(kRetryPause, left));
  }

  const StopSignal& stop_;
  const FollowOptions& options_;
  const OperatorClient client_;
  ExitCode how_it_ended_ = ExitCode::kOk;
  bool was_there_ = false;
  bool is_away_ = false;
  absl::Time last_answer_;
};

}  // namespace

int FollowStatus(const FollowOptions& options,
                 const std::shared_ptr<grpc::ChannelCredentials>& credentials,
                 const StopSignal& stop) {
  return StatusWatch(options, credentials, stop).Watch();
}

}  // namespace slipstream
