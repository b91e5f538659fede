#include "worker/client/coordinator_client.h"

#include <grpcpp/create_channel.h>

#include <utility>

#include "common/process/exit_code.h"
#include "common/process/steady_time.h"
#include "common/rpc/status_conversion.h"
#include "common/rpc/steady_deadline.h"
#include "common/rpc/transport_options.h"

namespace slipstream {
namespace {

using Stub = v1::Coordinator::Stub;

}  // namespace

CoordinatorClient::CoordinatorClient(std::string address, const Options& options, Sleeper sleeper)
    : address_(std::move(address)),
      options_(options),
      sleeper_(std::move(sleeper)),
      peer_{"coordinator at " + address_,
            grpc::CreateCustomChannel(address_, options_.credentials, ClientArguments())},
      stub_(v1::Coordinator::NewStub(peer_.channel)) {}

template <typename Request, typename Reply>
absl::StatusOr<Reply> CoordinatorClient::CallOnce(Method<Request, Reply> method,
                                                  const Request& request,
                                                  absl::Duration wait) const {
  grpc::ClientContext context;
  context.set_deadline(SteadyDeadline(SteadyNow() + options_.call_timeout + wait));
  Reply reply;
  const absl::Status status = FromGrpc((stub_.get()->*method)(&context, request, &reply));
  if (absl::IsUnimplemented(status)) {
    return NoCoordinatorAt(address_);
  }
  if (absl::IsAborted(status)) return RunFailedError(status.message());
  if (!status.ok()) return status;
  return reply;
}

template <typename Request, typename Reply>
absl::StatusOr<Reply> CoordinatorClient::Call(Method<Request, Reply> method, const Request& request,
                                              absl::Duration wait) const {
  return Persist<Reply>([&] { return CallOnce(method, request, wait); });
}

Retries CoordinatorClient::NewRetries() const {
  return {peer_, options_.retry, options_.seed + calls_++, sleeper_, options_.now};
}

void CoordinatorClient::PersistFor(absl::Duration give_up_after) {
  options_.retry.give_up_after = give_up_after;
}

absl::StatusOr<v1::RegisterReply> CoordinatorClient::Register(
    const v1::RegisterRequest& request) const {
  return Call(&Stub::Register, request);
}

absl::StatusOr<v1::PrepareModelReply> CoordinatorClient::PrepareModel(
    const v1::PrepareModelRequest& request) const {
  return Call(&Stub::PrepareModel, request, absl::Milliseconds(request.wait_ms()));
}

absl::Status CoordinatorClient::FinishInitialization(
    const v1::FinishInitializationRequest& request) const {
  return Call(&Stub::FinishInitialization, request).status();
}

absl::StatusOr<v1::MeetReply> CoordinatorClient::Meet(const v1::MeetRequest& request) const {
  return Call(&Stub::Meet, request, absl::Milliseconds(request.wait_ms()));
}

absl::Status CoordinatorClient::Report(const v1::ReportRequest& request) const {
  return Call(&Stub::Report, request).status();
}

absl::Status CoordinatorClient::Leave(const v1::LeaveRequest& request) const {
  return CallOnce(&Stub::Leave, request, absl::ZeroDuration()).status();
}

absl::StatusOr<v1::FollowReply> CoordinatorClient::Follow(const v1::FollowRequest& request) const {
  return Call(&Stub::Follow, request);
}

absl::StatusOr<v1::FollowReply> CoordinatorClient::FollowOnce(
    const v1::FollowRequest& request) const {
  return CallOnce(&Stub::Follow, request, absl::ZeroDuration());
}

absl::StatusOr<v1::RunStatus> CoordinatorClient::GetStatus() const {
  return CallOnce(&Stub::GetStatus, v1::GetStatusRequest(), absl::ZeroDuration());
}

}  // namespace slipstream
