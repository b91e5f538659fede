#include "server/service/server_sync.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/base/duration_text.h"
#include "common/log/log.h"
#include "common/process/exit_code.h"
#include "common/rpc/status_conversion.h"
#include "server/service/orders_wire.h"

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
      thread_([this] { Run(); }) {}

ServerSync::~ServerSync() {
  Stop();
  thread_.join();
}

std::optional<absl::Status> ServerSync::result() {
  MutexLock lock(mutex_);
  return result_;
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
  absl::Duration pause = options_.pause_min;
  last_answer_ = Clock::now();
  while (true) {
    v1::SyncServerReply reply;
    absl::Status status = SyncOnce(NextWait(), reply);
    // With this call the coordinator has learnt that the server knows that it may exit.
    if (orders_.may_exit) break;
    if (status.ok()) {
      // Until then its orders may be old, such as to return to a life that has ended.
      if (!reply.awaits_servers()) {
        status = TakeReply(reply);
        if (!status.ok()) return status;
        sink_.OnCoordinatorAnswered();
      }
      OnAnswer();
      pause = options_.pause_min;
      if (!Pause(absl::ZeroDuration())) return absl::CancelledError("stopped");
      continue;
    }

    if (IsFinal(status)) return status;
    if (!Pause(absl::ZeroDuration())) return absl::CancelledError("stopped");
    OnFailedCall(status);
    if (Clock::now() - last_answer_ > absl::ToChronoNanoseconds(options_.unreachable_max)) {
      return GivesUp();
    }
    if (!Pause(pause)) return absl::CancelledError("stopped");
    pause = std::min(pause * 2, options_.pause_max);
  }
  return orders_.phase == Phase::kFailed ? RunFailedError("the run failed: " + orders_.failure)
                                         : absl::OkStatus();
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

absl::Status ServerSync::SyncOnce(absl::Duration wait, v1::SyncServerReply& reply) {
  if (!Pause(absl::ZeroDuration())) return absl::CancelledError("stopped");
  if (is_lost_ && orders_.run != 0) options_.greet(orders_.run);
  sink_.OnCoordinatorAsked();
  v1::SyncServerRequest request;
  request.set_shard(Value(options_.shard));
  request.set_address(options_.address);
  request.set_settings(options_.settings);
  request.set_instance(options_.instance);
  request.set_call(++calls_);
  request.set_orders_seen(orders_.number);
  request.set_run(orders_.run);
  request.set_accepts_rollback(options_.accepts_rollback);
  request.set_wait_ms(static_cast<uint32_t>(absl::ToInt64Milliseconds(wait)));
  sink_.Describe(request);

  grpc::ClientContext context;
  absl::Duration patience = wait + kAnswerTime;
  if (is_lost_ && !orders_.may_exit) {
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
  }
  const grpc::Status status = coordinator_->SyncServer(&context, request, &reply);
  MutexLock lock(mutex_);
  call_ = nullptr;
  return FromGrpc(status);
}

absl::Status ServerSync::TakeReply(const v1::SyncServerReply& reply) {
  if (orders_.number != 0 && reply.run() != orders_.run) {
    return absl::FailedPreconditionError("the coordinator was restarted and began another run");
  }
  if (!reply.upstream().empty()) sink_.OnUpstream(reply.upstream());
  if (reply.orders() <= orders_.number) return absl::OkStatus();
  absl::StatusOr<ServerOrders> orders = FromWire(reply);
  if (!orders.ok()) return orders.status();
  orders_ = *std::move(orders);
  run_has_failed_ = orders_.phase == Phase::kFailed;
  sink_.OnOrders(orders_);
  return absl::OkStatus();
}

absl::Duration ServerSync::NextWait() const {
  if (orders_.may_exit) return absl::ZeroDuration();
  const bool is_waited_for = orders_.phase == Phase::kInitializing ||
                             orders_.phase == Phase::kDraining || sink_.AwaitsCoordinator();
  return is_waited_for ? options_.wait_eager : options_.wait;
}

bool ServerSync::Pause(absl::Duration duration) {
  MutexLock lock(mutex_);
  const Clock::time_point end = Clock::now() + absl::ToChronoNanoseconds(duration);
  while (!is_stopping_ && Clock::now() < end) stopping_.WaitUntil(mutex_, end);
  return !is_stopping_;
}

}  // namespace slipstream
