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
  const absl::Time deadline = absl::Now() + timeout;
  v1::RunStatus reply;
  absl::Status status = Ask(deadline, /*waits=*/false, reply);
  if (status.ok()) return reply;
  if (if_refused == IfRefused::kFail) return absl::Status(status.code(), Explain(status));
  if (absl::IsUnavailable(status)) {
    const absl::Status waited = Ask(deadline, /*waits=*/true, reply);
    if (waited.ok()) return reply;
    // A call that waited for a connection does not know what was wrong with it, as the first does.
    if (!absl::IsDeadlineExceeded(waited)) status = waited;
  }
  return absl::Status(status.code(), Explain(status, timeout));
}

absl::Status CoordinatorClient::Ask(absl::Time deadline, bool waits, v1::RunStatus& reply) const {
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(deadline));
  context.set_wait_for_ready(waits);
  return FromGrpc(stub_->GetStatus(&context, v1::GetStatusRequest(), &reply));
}

std::unique_ptr<StatusStream> CoordinatorClient::Watch(absl::Duration interval,
                                                       const StopSignal& stop) const {
  return std::make_unique<StatusStream>(*stub_, interval, stop);
}

std::string CoordinatorClient::Explain(const absl::Status& status, absl::Duration tried) const {
  const std::string reason(status.message());
  if (absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status)) {
    const bool says_how_long = tried > absl::ZeroDuration();
    return "no coordinator answers at " + address_ +
           (says_how_long ? " within " + absl::FormatDuration(tried) : "") + ": " + reason;
  }
  return "the coordinator at " + address_ + " answered: " + reason;
}

}  // namespace slipstream
