#include "worker/client/coordinator_stream.h"

#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/support/async_stream.h>

#include <utility>

#include "absl/status/status.h"
#include "common/process/steady_time.h"
#include "common/rpc/status_conversion.h"
#include "common/rpc/steady_deadline.h"

namespace slipstream {
namespace {

/// A stream that is over says why within this.
constexpr absl::Duration kEndTime = absl::Seconds(1);

}  // namespace

/// The stream from its start to its failure, after which nothing can be done with it. A RawCall
/// waits for each operation; here a read stays under way from one question to the next.
template <typename Request, typename Reply>
class CoordinatorStream<Request, Reply>::Call {
 public:
  Call(v1::Coordinator::Stub& stub, Method method) : stream_((stub.*method)(&context_, &queue_)) {
    start_.is_under_way = true;
    stream_->StartCall(&start_);
  }

  ~Call() {
    context_.TryCancel();  // What is cancelled ends without the peer.
    if (!is_finished_) (void)Finish(absl::InfiniteFuture());
    queue_.Shutdown();
    void* tag = nullptr;
    bool ok = false;
    while (queue_.Next(&tag, &ok)) continue;
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  absl::Status Write(const Request& request, absl::Time deadline) {
    if (is_finished_) return status_;
    if (absl::Status status = Await(start_, deadline); !status.ok()) return status;
    write_.is_under_way = true;
    stream_->Write(request, &write_);
    return Await(write_, deadline);
  }

  /// The next reply, or nothing if none has come by then. Not OK if none can come.
  absl::StatusOr<std::optional<Reply>> Read(absl::Time deadline) {
    if (!is_reading_) {
      is_reading_ = true;
      read_.is_under_way = true;
      stream_->Read(&reply_, &read_);
    }
    if (!Pump(read_, deadline)) return std::optional<Reply>();
    is_reading_ = false;
    if (!read_.is_ok) return Finish(SteadyNow() + kEndTime);
    return std::optional<Reply>(std::move(reply_));
  }

  /// The newest of those that have come by then. A failure behind one shows at the next Write.
  absl::StatusOr<std::optional<Reply>> ReadNewest(absl::Time deadline) {
    absl::StatusOr<std::optional<Reply>> newest = Read(deadline);
    while (newest.ok() && newest->has_value()) {
      absl::StatusOr<std::optional<Reply>> next = Read(absl::UnixEpoch());  // Without waiting.
      if (!next.ok() || !next->has_value()) break;
      newest = std::move(next);
    }
    return newest;
  }

 private:
  /// What the queue's tags point to.
  struct Operation {
    bool is_under_way = false;
    bool is_ok = false;
  };

  /// Lets the transport work until the operation is done; false if it is not by then.
  bool Pump(Operation& operation, absl::Time deadline) {
    while (operation.is_under_way) {
      void* tag = nullptr;
      bool is_ok = false;
      if (queue_.AsyncNext(&tag, &is_ok, SteadyDeadline(deadline)) !=
          grpc::CompletionQueue::GOT_EVENT) {
        return false;
      }
      *static_cast<Operation*>(tag) = {.is_under_way = false, .is_ok = is_ok};
    }
    return true;
  }

  absl::Status Await(Operation& operation, absl::Time deadline) {
    if (!Pump(operation, deadline)) return absl::DeadlineExceededError("no answer in time");
    return operation.is_ok ? absl::OkStatus() : Finish(SteadyNow() + kEndTime);
  }

  /// Ends the call once nothing else is under way, and says why it was over. It is cancelled if it
  /// does not end by then. REQUIRES: not finished.
  absl::Status Finish(absl::Time deadline) {
    for (Operation* operation : {&start_, &write_, &read_}) PumpOrCancel(*operation, deadline);
    grpc::Status status;
    Operation finish = {.is_under_way = true};
    stream_->Finish(&status, &finish);
    PumpOrCancel(finish, deadline);
    is_finished_ = true;
    status_ =
        status.ok() ? absl::UnavailableError("the coordinator ended the stream") : FromGrpc(status);
    return status_;
  }

  void PumpOrCancel(Operation& operation, absl::Time deadline) {
    if (Pump(operation, deadline)) return;
    context_.TryCancel();
    Pump(operation, absl::InfiniteFuture());
  }

  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  Operation start_;
  Operation write_;
  Operation read_;
  bool is_reading_ = false;  // Until its result is taken; a write may see it done.
  bool is_finished_ = false;
  absl::Status status_;
  Reply reply_;
  std::unique_ptr<grpc::ClientAsyncReaderWriter<Request, Reply>> stream_;
};

template <typename Request, typename Reply>
CoordinatorStream<Request, Reply>::CoordinatorStream(const CoordinatorClient& coordinator,
                                                     Method method)
    : coordinator_(coordinator), method_(method) {}

template <typename Request, typename Reply>
CoordinatorStream<Request, Reply>::~CoordinatorStream() = default;

template <typename Request, typename Reply>
absl::StatusOr<Reply> CoordinatorStream<Request, Reply>::Ask(const Request& request,
                                                             absl::Duration wait) {
  return coordinator_.Persist<Reply>([&]() -> absl::StatusOr<Reply> {
    absl::StatusOr<std::optional<Reply>> reply =
        Try(request, coordinator_.options().call_timeout + wait);
    if (!reply.ok()) return reply.status();
    if (reply->has_value()) return **std::move(reply);
    call_.reset();  // A late answer must not be taken for the next one.
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
  if (call_ == nullptr) call_ = std::make_unique<Call>(coordinator_.stub(), method_);
  const absl::Time begin = SteadyNow();
  const absl::Status written = call_->Write(request, begin + coordinator_.options().call_timeout);
  absl::StatusOr<std::optional<Reply>> reply =
      written.ok() ? call_->ReadNewest(begin + patience) : written;
  if (!reply.ok()) call_.reset();
  return reply;
}

template class CoordinatorStream<v1::HeartbeatRequest, v1::HeartbeatReply>;
template class CoordinatorStream<v1::GetWorkRequest, v1::GetWorkReply>;

}  // namespace slipstream
