#include "deploy/psctl/coordinator_client.h"

#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include "absl/time/clock.h"
#include "common/rpc/status_conversion.h"
#include "common/rpc/transport_options.h"

namespace slipstream {

CoordinatorClient::CoordinatorClient(const std::string& address)
    : address_(address),
      stub_(v1::Coordinator::NewStub(grpc::CreateCustomChannel(
          address, grpc::InsecureChannelCredentials(), ClientArguments()))) {}

absl::StatusOr<v1::RunStatus> CoordinatorClient::GetStatus(absl::Duration timeout,
                                                           IfRefused if_refused) const {
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + timeout));
  context.set_wait_for_ready(if_refused == IfRefused::kWait);
  v1::RunStatus reply;
  const absl::Status status = FromGrpc(stub_->GetStatus(&context, v1::GetStatusRequest(), &reply));
  if (status.ok()) return reply;
  return absl::Status(status.code(), Explain(status));
}

std::unique_ptr<StatusStream> CoordinatorClient::Watch(absl::Duration interval,
                                                       const StopSignal& stop) const {
  return std::make_unique<StatusStream>(*stub_, interval, stop);
}

std::string CoordinatorClient::Explain(const absl::Status& status) const {
  const std::string reason(status.message());
  if (absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status)) {
    return "no coordinator answers at " + address_ + ": " + reason;
  }
  return "the coordinator at " + address_ + " answered: " + reason;
}

}  // namespace slipstream
