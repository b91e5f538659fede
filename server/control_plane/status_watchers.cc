#include "server/control_plane/status_watchers.h"

#include <fmt/format.h>
#include <grpc/grpc.h>
#include <grpcpp/server_context.h>
#include <spdlog/common.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/rpc/status_conversion.h"
#include "server/listen/end_call.h"

namespace slipstream {
namespace {

bool IsOver(const v1::RunStatus& status) {
  return status.phase() == v1::FINISHED || status.phase() == v1::FAILED;
}

absl::StatusOr<absl::Duration> IntervalOf(const v1::WatchStatusRequest& request) {
  if (request.interval_ms() == 0) return StatusWatchers::kIntervalDefault;
  const absl::Duration interval = absl::Milliseconds(request.interval_ms());
  if (interval >= StatusWatchers::kIntervalMin && interval <= StatusWatchers::kIntervalMax) {
    return interval;
  }
  return absl::InvalidArgumentError(fmt::format(
      "interval_ms must be in [{}, {}], or 0 for {}, not {}",
      absl::ToInt64Milliseconds(StatusWatchers::kIntervalMin),
      absl::ToInt64Milliseconds(StatusWatchers::kIntervalMax),
      absl::ToInt64Milliseconds(StatusWatchers::kIntervalDefault), request.interval_ms()));
}

}  // namespace

/// One call. Deletes itself when gRPC is done with it.
class StatusWatchers::Call final : public grpc::ServerWriteReactor<v1::RunStatus> {
 public:
  Call(StatusWatchers& watchers, grpc_call* call, absl::Duration interval,
       std::unique_ptr<Caller> caller)
      : watchers_(watchers), call_(call), interval_(interval), caller_(std::move(caller)) {}

  absl::Status Admit() const { return caller_ == nullptr ? absl::OkStatus() : caller_->Admit(); }
  void OnAdmitted() {
    if (caller_ != nullptr) caller_->IsGuest();
  }

  /// To be called once, by the thread that marked the call as writing.
  void Write(const v1::RunStatus& status) {
    status_ = status;
    StartWrite(&status_);
  }

  bool IsDue(absl::Time now, bool run_is_over) const {
    return !is_writing && (run_is_over || now >= next);
  }

  void MarkWriting(absl::Time now) {
    is_writing = true;
    writes_since = now;
    next = now + interval_;
  }

  /// Returns what gRPC knows the call by, with a reference to it.
  grpc_call* Handle() const {
    grpc_call_ref(call_);
    return call_;
  }

  bool sent_last() const { return IsOver(status_); }

  // Guarded by the mutex of the watchers.
  bool is_writing = false;
  bool is_cancelled = false;
  absl::Time writes_since;  // While it writes; infinite once it is ended for that.
  absl::Time next = absl::InfinitePast();

 private:
  void OnWriteDone(bool ok) override { watchers_.OnWritten(this, ok); }
  void OnCancel() override { watchers_.OnCancelled(this); }
  void OnDone() override { delete this; }

  StatusWatchers& watchers_;
  grpc_call* const call_;
  const absl::Duration interval_;
  const std::unique_ptr<Caller> caller_;

  // Owned by the write under way.
  v1::RunStatus status_;
};

absl::Status StatusWatchers::Admit(Call* call) {
  if (is_stopping_) return absl::UnavailableError("the coordinator is stopping");
  if (calls_.size() >= kWatchersMax) {
    return absl::ResourceExhaustedError(
        fmt::format("{} watch the status already; end one, or ask GetStatus", kWatchersMax));
  }
  calls_.insert(call);
  return absl::OkStatus();
}

grpc::ServerWriteReactor<v1::RunStatus>* StatusWatchers::Watch(
    grpc::CallbackServerContext& context, const v1::WatchStatusRequest& request, absl::Time now,
    std::unique_ptr<Caller> caller) {
  const absl::StatusOr<absl::Duration> interval = IntervalOf(request);
  Call* call =
      new Call(*this, context.c_call(), interval.value_or(kIntervalDefault), std::move(caller));
  absl::Status admitted = interval.ok() ? call->Admit() : interval.status();
  if (admitted.ok()) {
    MutexLock lock(mutex_);
    admitted = Admit(call);
    // From here on this thread writes to the call, even if the call is cancelled meanwhile.
    if (admitted.ok()) call->MarkWriting(now);
  }
  if (admitted.ok()) {
    call->OnAdmitted();
    Send({call});
  } else {
    call->Finish(ToGrpc(admitted));
  }
  return call;
}

void StatusWatchers::Tick(absl::Time now, bool run_is_over) {
  std::set<Call*> due;
  {
    MutexLock lock(mutex_);
    for (Call* call : calls_) {
      if (!call->IsDue(now, run_is_over)) continue;
      call->MarkWriting(now);
      due.insert(call);
    }
  }
  if (!due.empty()) Send(due);
  EndStalled(now);
}

void StatusWatchers::EndStalled(absl::Time now) {
  std::vector<grpc_call*> stalled;
  {
    MutexLock lock(mutex_);
    const absl::Duration time = calls_.size() < kWatchersMax ? kReadTimeMax : kReadTimePressed;
    for (Call* call : calls_) {
      if (!call->is_writing || now - call->writes_since < time) continue;
      call->writes_since = absl::InfiniteFuture();  // Each call is ended once.
      stalled.push_back(call->Handle());
    }
  }
  for (grpc_call* const call : stalled) {
    EndCall(call, "STALLED: the watcher does not read the status", spdlog::level::warn);
    grpc_call_unref(call);
  }
}

void StatusWatchers::Send(const std::set<Call*>& calls) {
  const v1::RunStatus status = ask_();
  for (Call* call : calls) call->Write(status);
}

void StatusWatchers::OnWritten(Call* call, bool ok) {
  std::optional<grpc::Status> end;
  {
    MutexLock lock(mutex_);
    call->is_writing = false;
    if (!ok || call->is_cancelled) {
      end = grpc::Status(grpc::StatusCode::CANCELLED, "the watcher is gone");
    } else if (call->sent_last()) {
      end = grpc::Status::OK;
    } else if (is_stopping_) {
      end = grpc::Status(grpc::StatusCode::UNAVAILABLE, "the coordinator is stopping");
    }
    if (end.has_value()) calls_.erase(call);
  }
  if (end.has_value()) call->Finish(*end);
}

void StatusWatchers::OnCancelled(Call* call) {
  {
    MutexLock lock(mutex_);
    // A call that was refused or ends anyway is not in here; a call that writes ends when the write
    // is done.
    if (!calls_.contains(call)) return;
    call->is_cancelled = true;
    if (call->is_writing) return;
    calls_.erase(call);
  }
  call->Finish(grpc::Status(grpc::StatusCode::CANCELLED, "the watcher is gone"));
}

void StatusWatchers::Stop() {
  std::set<Call*> idle;
  {
    MutexLock lock(mutex_);
    is_stopping_ = true;
    for (Call* call : calls_) {
      if (!call->is_writing) idle.insert(call);
    }
    for (Call* call : idle) calls_.erase(call);
  }
  for (Call* call : idle) {
    call->Finish(grpc::Status(grpc::StatusCode::UNAVAILABLE, "the coordinator is stopping"));
  }
}

size_t StatusWatchers::size() {
  MutexLock lock(mutex_);
  return calls_.size();
}

}  // namespace slipstream
