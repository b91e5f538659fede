#include "server/control_plane/server_sync.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/base/duration_text.h"
#include "common/log/log.h"
#include "common/process/exit_code.h"
#include "common/rpc/status_conversion.h"

namespace slipstream {
namespace {

using Clock = std::chrono::steady_clock;

// How long an answer may take beyond the wait: a busy coordinator is not a lost one.
constexpr absl::Duration kAnswerTime = absl::Seconds(5);

/// Returns whether asking again cannot help.
bool IsFinal(const absl::Status& status) {
  return status.code() == absl::StatusCode::kInvalidArgument ||
         status.code() == absl::StatusCode::kFailedPrecondition ||
         status.code() == absl::StatusCode::kDataLoss ||
         status.code() == absl::StatusCode::kUnimplemented;
}

}  // namespace

ServerSync::ServerSync(Options options, std::unique_ptr<v1::Coordinator::StubInterface> coordinator,
                       OrdersSink& sink)
    : options_(std::move(options)),
      coordinator_(std::move(coordinator)),
      sink_(sink),
      talk_(options_.talk, sink_),
      thread_([this] { Run(); }) {}

ServerSync::~ServerSync() {
  Stop();
  thread_.join();
}

std::optional<absl::Status> ServerSync::result() {
  MutexLock lock(mutex_);
  return result_;
}

ServerSync::Known ServerSync::known() {
  MutexLock lock(mutex_);
  return known_;
}

void ServerSync::Stop() {
  {
    MutexLock lock(mutex_);
    is_stopping_ = true;
    if (call_ != nullptr) call_->TryCancel();
  }
  stopping_.NotifyAll();
}

void ServerSync::Run() {
  const absl::Status result = Converse();
  MutexLock lock(mutex_);
  result_ = result;
}

absl::Status ServerSync::Converse() {
  last_answer_ = Clock::now();
  while (true) {
    v1::SyncServerReply reply;
    const absl::Status status = SyncOnce(reply);
    const ServerOrders& orders = talk_.orders();
    // With this call the coordinator has learnt that the server knows that it may exit.
    if (orders.may_exit) {
      return orders.phase == Phase::kFailed ? RunFailedError("the run failed: " + orders.failure)
                                            : absl::OkStatus();
    }
    if (status.ok()) {
      if (absl::Status taken = talk_.OnReply(reply); !taken.ok()) return taken;
      {
        MutexLock lock(mutex_);
        known_.run = orders.run;
        known_.phase = orders.phase;
        known_.failure = orders.failure;
        known_.lost_because.clear();
      }
      OnAnswer();
      if (!Pause(absl::ZeroDuration())) return absl::CancelledError("stopped");
      continue;
    }

    if (IsFinal(status)) return status;
    if (!Pause(absl::ZeroDuration())) return absl::CancelledError("stopped");
    OnFailedCall(status);
    {
      MutexLock lock(mutex_);
      known_.lost_because = lost_because_;
    }
    if (Clock::now() - last_answer_ > absl::ToChronoNanoseconds(options_.unreachable_max)) {
      return GivesUp();
    }
    if (!Pause(talk_.OnFailure())) return absl::CancelledError("stopped");
  }
}

absl::Status ServerSync::GivesUp() const {
  if (!is_refused_) {
    return absl::UnavailableError("the coordinator does not answer: " + lost_because_);
  }
  return absl::ResourceExhaustedError(
      fmt::format("{}; it did not end within {} (cluster.start_timeout): end one of the two",
                  lost_because_, DurationText(options_.unreachable_max)));
}

void ServerSync::OnRefused(const std::string& why) {
  lost_because_ = why;
  if (!std::exchange(is_refused_, true)) {
    LogWarning(
        "another process serves this shard; this one takes over once that one has been silent for "
        "so long. If it was started twice, end one of them",
        {{"reason", why},
         {"coordinator", options_.coordinator},
         {"silent_for", DurationText(options_.takeover)}});
  }
}

void ServerSync::OnFailedCall(const absl::Status& status) {
  if (absl::IsAlreadyExists(status)) return OnRefused(std::string(status.message()));
  is_refused_ = false;
  // A call that waited for a connection does not know why there was none.
  if (!is_lost_ || !absl::IsDeadlineExceeded(status)) lost_because_ = std::string(status.message());
  if (is_lost_) return;
  is_lost_ = true;
  if (was_answered_) {
    LogWarning("coordinator lost", {{"reason", lost_because_}});
  } else {
    LogInfo("waiting for the coordinator", {{"at", options_.coordinator}});
  }
}

void ServerSync::OnAnswer() {
  if (is_lost_) LogInfo(was_answered_ ? "coordinator found again" : "coordinator found");
  if (is_refused_) LogInfo("took over from the other process");
  is_lost_ = is_refused_ = false;
  was_answered_ = true;
  last_answer_ = Clock::now();
}

absl::Status ServerSync::SyncOnce(v1::SyncServerReply& reply) {
  if (!Pause(absl::ZeroDuration())) return absl::CancelledError("stopped");
  if (is_lost_ && talk_.orders().run != 0) options_.greet(talk_.orders().run);
  const auto report = std::make_shared<const v1::SyncServerRequest>(talk_.Ask());
  const v1::SyncServerRequest& request = *report;

  grpc::ClientContext context;
  absl::Duration patience = absl::Milliseconds(request.wait_ms()) + kAnswerTime;
  if (is_lost_ && !talk_.orders().may_exit) {
    // A channel connects again only while a call waits for it. The first call that fails does not
    // wait: it fails at once, and says why.
    context.set_wait_for_ready(true);
    patience = std::min(patience, options_.unreachable_max);
  }
  context.set_deadline(std::chrono::system_clock::now() + absl::ToChronoMilliseconds(patience));
  {
    MutexLock lock(mutex_);
    if (is_stopping_) return absl::CancelledError("stopped");
    call_ = &context;
    known_.report = report;
  }
  const grpc::Status status = coordinator_->SyncServer(&context, request, &reply);
  MutexLock lock(mutex_);
  call_ = nullptr;
  return FromGrpc(status);
}

bool ServerSync::Pause(absl::Duration duration) {
  MutexLock lock(mutex_);
  const Clock::time_point end = Clock::now() + absl::ToChronoNanoseconds(duration);
  while (!is_stopping_ && Clock::now() < end) stopping_.WaitUntil(mutex_, end);
  return !is_stopping_;
}

}  // namespace slipstream
