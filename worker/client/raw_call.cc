#include "worker/client/raw_call.h"

#include <algorithm>
#include <thread>

#include "absl/time/clock.h"
#include "common/base/check.h"
#include "common/rpc/status_conversion.h"

namespace slipstream {
namespace {

/// How long a message may take to be polled for. Measured: 300 µs are too short for the answer to
/// 1 MiB over TCP, and 1500 µs gain no more than 600.
constexpr absl::Duration kSoon = absl::Microseconds(500);

}  // namespace

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
  switch (queue_.AsyncNext(&tag, &ok, absl::ToChronoTime(deadline))) {
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
  const absl::Time begin = absl::Now();
  stream_->Read(&message, this);
  std::optional<bool> ok;
  if (last_read_ <= kSoon) ok = WaitAwake(std::min(begin + kSoon, deadline));
  if (!ok.has_value()) ok = Wait(deadline);
  last_read_ = absl::Now() - begin;
  return *ok;
}

std::optional<bool> RawCall::WaitAwake(absl::Time end) {
  const auto at_once = absl::ToChronoTime(absl::UnixEpoch());
  do {
    void* tag = nullptr;
    bool ok = false;
    if (queue_.AsyncNext(&tag, &ok, at_once) == grpc::CompletionQueue::GOT_EVENT) return ok;
    std::this_thread::yield();
  } while (absl::Now() < end);
  return std::nullopt;
}

absl::Status RawCall::Finish(absl::Time deadline) {
  PS_CHECK(!is_finished_);
  is_finished_ = true;
  grpc::Status status;
  stream_->Finish(&status, this);
  Wait(deadline);
  if (is_late_) return absl::DeadlineExceededError("no answer in time");
  return FromGrpc(status);
}

void RawCall::Poll(absl::Duration duration) {
  void* tag = nullptr;
  bool ok = false;
  queue_.AsyncNext(&tag, &ok, absl::ToChronoTime(absl::Now() + duration));
}

}  // namespace slipstream
