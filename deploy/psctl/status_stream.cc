#include "deploy/psctl/status_stream.h"

#include <algorithm>
#include <string>

#include "common/process/steady_time.h"
#include "common/rpc/status_conversion.h"
#include "common/rpc/steady_deadline.h"

namespace slipstream {
namespace {

// The time within which a signal is noticed.
constexpr absl::Duration kStopInterval = absl::Milliseconds(50);

v1::WatchStatusRequest RequestFor(absl::Duration interval) {
  v1::WatchStatusRequest request;
  request.set_interval_ms(static_cast<uint32_t>(absl::ToInt64Milliseconds(interval)));
  return request;
}

}  // namespace

StatusStream::StatusStream(v1::Coordinator::Stub& stub, absl::Duration interval,
                           const StopSignal& stop)
    : stop_(stop), reader_(stub.PrepareAsyncWatchStatus(&context_, RequestFor(interval), &queue_)) {
  reader_->StartCall(nullptr);
}

StatusStream::~StatusStream() {
  context_.TryCancel();
  queue_.Shutdown();
  void* tag = nullptr;
  bool ok = false;
  // The operation under way writes into this object.
  while (queue_.Next(&tag, &ok)) {
  }
}

absl::StatusOr<bool> StatusStream::AwaitOperation(absl::Time deadline) {
  void* tag = nullptr;
  bool ok = false;
  while (!stop_.stopped()) {
    const absl::Time look = std::min(deadline, SteadyNow() + kStopInterval);
    if (queue_.AsyncNext(&tag, &ok, SteadyDeadline(look)) == grpc::CompletionQueue::GOT_EVENT) {
      return ok;
    }
    if (SteadyNow() >= deadline) return absl::DeadlineExceededError("it says nothing");
  }
  return absl::CancelledError("stopped");
}

absl::StatusOr<std::optional<v1::RunStatus>> StatusStream::Next(absl::Duration patience) {
  const absl::Time deadline = SteadyNow() + patience;
  absl::StatusOr<bool> went_well = true;
  if (!is_started_) went_well = AwaitOperation(deadline);
  is_started_ = true;
  if (went_well.ok() && *went_well) {
    reader_->Read(&status_, nullptr);
    went_well = AwaitOperation(deadline);
  }
  if (!went_well.ok()) return went_well.status();
  if (*went_well) return std::optional(status_);

  reader_->Finish(&end_, nullptr);
  if (const auto finished = AwaitOperation(deadline); !finished.ok()) return finished.status();
  if (!end_.ok()) return FromGrpc(end_);
  return std::optional<v1::RunStatus>();
}

}  // namespace slipstream
