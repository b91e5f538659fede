#include "worker/client/raw_call.h"

#include <thread>

#include "common/base/check.h"
#include "common/process/steady_time.h"
#include "common/rpc/status_conversion.h"
#include "common/rpc/steady_deadline.h"

namespace slipstream {
namespace {

gpr_timespec AtOnce() { return gpr_inf_past(GPR_CLOCK_MONOTONIC); }

}  // namespace

RawCall::RawCall(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
                 CancelSwitch* cancel, absl::Time deadline)
    : cancel_(cancel) {
  if (cancel_ != nullptr) cancel_->Attach(&context_);
  stream_ = grpc::GenericStub(channel).PrepareCall(&context_, method, &queue_);
  stream_->StartCall(Begin(start_));
  // If the start fails, so does the first operation, which leads to Finish and its status.
  Await(start_, deadline);
}

RawCall::~RawCall() {
  if (!is_finished_) {
    context_.TryCancel();
    (void)Finish(absl::InfiniteFuture());  // A cancelled call does not wait for the peer.
  }
  queue_.Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (queue_.Next(&tag, &ok)) continue;
  if (cancel_ != nullptr) cancel_->Detach(&context_);
}

void* RawCall::Begin(Operation& operation) {
  PS_CHECK(!operation.is_under_way);
  operation.is_under_way = true;
  return &operation;
}

bool RawCall::Pump(const Operation& operation, gpr_timespec deadline) {
  while (operation.is_under_way) {
    void* tag = nullptr;
    bool ok = false;
    if (queue_.AsyncNext(&tag, &ok, deadline) != grpc::CompletionQueue::GOT_EVENT) return false;
    *static_cast<Operation*>(tag) = {.is_under_way = false, .has_succeeded = ok};
  }
  return true;
}

bool RawCall::IsOver(const Operation& operation) { return Pump(operation, AtOnce()); }

bool RawCall::Await(Operation& operation, absl::Time deadline) {
  if (!Pump(operation, SteadyDeadline(deadline))) {
    is_late_ = true;
    context_.TryCancel();
    // A cancelled operation ends without the peer.
    PS_CHECK(Pump(operation, gpr_inf_future(GPR_CLOCK_MONOTONIC)));
    return false;
  }
  return operation.has_succeeded;
}

bool RawCall::Write(const grpc::ByteBuffer& message, Next next, absl::Time deadline) {
  grpc::WriteOptions options;
  if (next == Next::kWrites) options.set_buffer_hint();
  if (next == Next::kPauses) options.set_write_through();
  stream_->Write(message, options, Begin(write_));
  return Await(write_, deadline);
}

void RawCall::WritesDone(absl::Time deadline) {
  stream_->WritesDone(Begin(write_));
  Await(write_, deadline);
}

bool RawCall::Read(grpc::ByteBuffer& message, absl::Time deadline) {
  read_wait_.Begin();
  if (!has_begun_read_) ReadAhead();
  while (AwakeWait::Clock::now() < read_wait_.awake_until() && SteadyNow() < deadline) {
    if (IsOver(read_)) break;
    std::this_thread::yield();
  }
  Await(read_, deadline);
  read_wait_.End();
  return TakeRead(message) == Came::kMessage;
}

RawCall::Came RawCall::ReadBy(grpc::ByteBuffer& message, absl::Time deadline) {
  if (!has_begun_read_) ReadAhead();
  if (!Pump(read_, SteadyDeadline(deadline))) return Came::kNothingYet;
  return TakeRead(message);
}

RawCall::Came RawCall::TakeRead(grpc::ByteBuffer& message) {
  has_begun_read_ = false;
  message.Swap(&message_);
  message_.Clear();
  return read_.has_succeeded ? Came::kMessage : Came::kEnd;
}

void RawCall::ReadAhead() {
  PS_CHECK(!has_begun_read_);
  has_begun_read_ = true;
  stream_->Read(&message_, Begin(read_));
}

bool RawCall::HasReadAhead() { return has_begun_read_ && IsOver(read_); }

absl::Status RawCall::Finish(absl::Time deadline) {
  PS_CHECK(!is_finished_);
  is_finished_ = true;
  Await(read_, deadline);
  grpc::Status status;
  Operation finish;
  stream_->Finish(&status, Begin(finish));
  Await(finish, deadline);
  if (is_late_) return absl::DeadlineExceededError("no answer in time");
  return FromGrpc(status);
}

void RawCall::Poll(absl::Duration duration) {
  Operation never = {.is_under_way = true};
  Pump(never, SteadyDeadline(SteadyNow() + duration));
}

}  // namespace slipstream
