#include "worker/client/coordinator_stream.h"

#include <utility>

#include "absl/status/status.h"
#include "common/process/exit_code.h"
#include "common/process/steady_time.h"
#include "common/rpc/message_bytes.h"

namespace slipstream {
namespace {

/// How long a stream that is over may take to report its status.
constexpr absl::Duration kEndTime = absl::Seconds(1);

template <typename Request>
constexpr const char* kMethod = nullptr;
template <>
constexpr const char* kMethod<v1::HeartbeatRequest> = "/slipstream.v1.Coordinator/Heartbeat";
template <>
constexpr const char* kMethod<v1::GetWorkRequest> = "/slipstream.v1.Coordinator/GetWork";

}  // namespace

template <typename Request, typename Reply>
absl::StatusOr<Reply> CoordinatorStream<Request, Reply>::Ask(const Request& request,
                                                             absl::Duration wait) {
  return coordinator_.Persist<Reply>([&]() -> absl::StatusOr<Reply> {
    absl::StatusOr<std::optional<Reply>> reply =
        Try(request, coordinator_.options().call_timeout + wait);
    if (!reply.ok()) return reply.status();
    if (reply->has_value()) return **std::move(reply);
    call_.reset();  // A late reply must not be taken for the next one.
    return absl::DeadlineExceededError("no answer in time");
  });
}

template <typename Request, typename Reply>
absl::StatusOr<std::optional<Reply>> CoordinatorStream<Request, Reply>::Tell(
    const Request& request, absl::Duration patience) {
  return coordinator_.Persist<std::optional<Reply>>([&] { return Try(request, patience); });
}

template <typename Request, typename Reply>
absl::StatusOr<std::optional<Reply>> CoordinatorStream<Request, Reply>::Try(
    const Request& request, absl::Duration patience) {
  const absl::Time begin = SteadyNow();
  const absl::Time write_end = begin + coordinator_.options().call_timeout;
  if (call_ == nullptr) {
    call_ = std::make_unique<RawCall>(coordinator_.channel(), kMethod<Request>, nullptr, write_end);
  }
  absl::StatusOr<std::optional<Reply>> reply =
      call_->Write(ToBytes(request), RawCall::Next::kReads, write_end)
          ? ReadNewest(begin + patience)
          : End();
  if (!reply.ok()) call_.reset();
  return reply;
}

template <typename Request, typename Reply>
absl::StatusOr<std::optional<Reply>> CoordinatorStream<Request, Reply>::ReadNewest(
    absl::Time deadline) {
  std::optional<Reply> newest;
  for (;;) {
    grpc::ByteBuffer message;
    const absl::Time until = newest.has_value() ? absl::UnixEpoch() : deadline;
    switch (call_->ReadBy(message, until)) {
      case RawCall::Came::kNothingYet:
        return newest;
      case RawCall::Came::kEnd:
        if (newest.has_value()) return newest;
        return End();
      case RawCall::Came::kMessage:
        newest.emplace();
        if (!FromBytes(std::move(message), *newest)) {
          return absl::InternalError("the coordinator's answer is none to the question");
        }
    }
  }
}

template <typename Request, typename Reply>
absl::Status CoordinatorStream<Request, Reply>::End() {
  const absl::Status status = call_->Finish(SteadyNow() + kEndTime);
  if (absl::IsAborted(status)) return RunFailedError(status.message());
  return status.ok() ? absl::UnavailableError("the coordinator ended the stream") : status;
}

template class CoordinatorStream<v1::HeartbeatRequest, v1::HeartbeatReply>;
template class CoordinatorStream<v1::GetWorkRequest, v1::GetWorkReply>;

}  // namespace slipstream
