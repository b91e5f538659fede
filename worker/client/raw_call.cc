#include "worker/client/raw_call.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "common/base/check.h"
#include "common/process/steady_time.h"
#include "common/rpc/status_conversion.h"
#include "common/rpc/steady_deadline.h"

namespace slipstream {
RawCall::RawCall(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
                 CancelSwitch& cancel, absl::Time deadline)
    : cancel_(cancel) {
  cancel_.Attach(&context_);
  stream_ = grpc::GenericStub(channel).PrepareCall(&context_, method, &queue_);
  stream_->StartCall(this);
  // Where it fails, so does the first operation, which leads to Finish and its status.
  Wait(deadline);
}

RawCall::~RawCall() {
  if (!is_finished_) {
    context_.TryCancel();
    (void)Finish(absl::InfiniteFuture());  // Of a cancelled call it does not wait for the peer.
  }
  queue_.Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (queue_.Next(&tag, &ok)) continue;
  cancel_.Detach(&context_);
}

bool RawCall::Wait(absl::Time deadline) {
  void* tag = nullptr;
  bool ok = false;
  switch (queue_.AsyncNext(&tag, &ok, SteadyDeadline(deadline))) {
    case grpc::CompletionQueue::GOT_EVENT:
      return ok;
    case grpc::CompletionQueue::TIMEOUT:
      is_late_ = true;
      context_.TryCancel();
      PS_CHECK(queue_.Next(&tag, &ok));  // What is cancelled ends without the peer.
      return false;
    case grpc::CompletionQueue::SHUTDOWN:
      break;
  }
  PS_CHECK(false);
  return false;
}

bool RawCall::Write(const grpc::ByteBuffer& message, Next next, absl::Time deadline) {
  grpc::WriteOptions options;
  if (next == Next::kWrites) options.set_buffer_hint();
  if (next == Next::kPauses) options.set_write_through();
  stream_->Write(message, options, this);
  return Wait(deadline);
}

void RawCall::WritesDone(absl::Time deadline) {
  stream_->WritesDone(this);
  Wait(deadline);
}

bool RawCall::Read(grpc::ByteBuffer& message, absl::Time deadline) {
  read_wait_.Begin();
  if (!reads_ahead_) ReadAhead();
  std::optional<bool> ok = std::exchange(read_ahead_, std::nullopt);
  if (!ok.has_value()) ok = WaitAwake(deadline);
  if (!ok.has_value()) ok = Wait(deadline);
  reads_ahead_ = false;
  read_wait_.End();
  message.Swap(&ahead_);
  ahead_.Clear();
  return *ok;
}

void RawCall::ReadAhead() {
  PS_CHECK(!reads_ahead_);
  reads_ahead_ = true;
  stream_->Read(&ahead_, this);
}

bool RawCall::HasReadAhead() {
  if (reads_ahead_ && !read_ahead_.has_value()) read_ahead_ = Look();
  return read_ahead_.has_value();
}

std::optional<bool> RawCall::Look() {
  void* tag = nullptr;
  bool ok = false;
  const gpr_timespec at_once = gpr_inf_past(GPR_CLOCK_MONOTONIC);
  if (queue_.AsyncNext(&tag, &ok, at_once) != grpc::CompletionQueue::GOT_EVENT) return std::nullopt;
  return ok;
}

std::optional<bool> RawCall::WaitAwake(absl::Time deadline) {
  while (AwakeWait::Clock::now() < read_wait_.awake_until() && SteadyNow() < deadline) {
    if (const std::optional<bool> ok = Look()) return ok;
    std::this_thread::yield();
  }
  return std::nullopt;
}

absl::Status RawCall::Finish(absl::Time deadline) {
  PS_CHECK(!is_finished_);
  is_finished_ = true;
  if (reads_ahead_ && !read_ahead_.has_value()) Wait(deadline);
  grpc::Status status;
  stream_->Finish(&status, this);
  Wait(deadline);
  if (is_late_) return absl::DeadlineExceededError("no answer in time");
  return FromGrpc(status);
}

void RawCall::Poll(absl::Duration duration) {
  void* tag = nullptr;
  bool ok = false;
  const gpr_timespec end = SteadyDeadline(SteadyNow() + duration);
  if (queue_.AsyncNext(&tag, &ok, end) == grpc::CompletionQueue::GOT_EVENT) read_ahead_ = ok;
}

}  // namespace slipstream
