#include "deploy/psctl/operator_client.h"

#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>

#include "absl/time/clock.h"
#include "common/base/duration_text.h"
#include "common/base/printable.h"
#include "common/process/exit_code.h"
#include "common/process/steady_time.h"
#include "common/process/version.h"
#include "common/rpc/secure_credentials.h"
#include "common/rpc/status_conversion.h"
#include "common/rpc/steady_deadline.h"
#include "common/rpc/transport_options.h"
#include "common/security/credential_files.h"

namespace slipstream {
namespace {

// How long an answer may take beyond the wait that was asked for.
constexpr absl::Duration kAnswerTime = absl::Seconds(5);

// The time for a save before the run is left: two rounds of slow workers, and a write to a slow
// disk.
constexpr absl::Duration kSaveTime = absl::Seconds(5);

}  // namespace

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> PsctlCredentials(
    const SecuritySpec& security) {
  const CredentialHolder holder = {.role = CertifiedRole::kOperator};
  const CredentialFiles files = FilesFor(security, holder);
  const absl::StatusOr<OwnCredentials> own = CheckCredentials(files, holder, absl::Now());
  if (!own.ok()) return own.status();
  return MakeChannelCredentials(files);
}

OperatorClient::OperatorClient(const std::string& address,
                               const std::shared_ptr<grpc::ChannelCredentials>& credentials)
    : address_(address),
      stub_(v1::Coordinator::NewStub(
          grpc::CreateCustomChannel(address, credentials, ClientArguments()))) {}

absl::StatusOr<v1::RunStatus> OperatorClient::GetStatus(absl::Duration timeout,
                                                        IfRefused if_refused) const {
  const absl::Time deadline = SteadyNow() + timeout;
  v1::RunStatus reply;
  absl::Status status = Ask(deadline, /*waits=*/false, reply);
  if (status.ok()) return reply;
  if (if_refused == IfRefused::kFail) return Explain(status);
  if (absl::IsUnavailable(status)) {
    const absl::Status waited = Ask(deadline, /*waits=*/true, reply);
    if (waited.ok()) return reply;
    // A call that waited for a connection cannot say what was wrong with it; the first call can.
    if (!absl::IsDeadlineExceeded(waited)) status = waited;
  }
  return Explain(status, timeout);
}

absl::Status OperatorClient::Ask(absl::Time deadline, bool waits, v1::RunStatus& reply) const {
  grpc::ClientContext context;
  context.set_deadline(SteadyDeadline(deadline));
  context.set_wait_for_ready(waits);
  return FromGrpc(stub_->GetStatus(&context, v1::GetStatusRequest(), &reply));
}

absl::Status OperatorClient::EndTraining(absl::Duration timeout) const {
  grpc::ClientContext context;
  context.set_deadline(SteadyDeadline(SteadyNow() + timeout));
  v1::EndTrainingReply reply;
  const absl::Status status =
      FromGrpc(stub_->EndTraining(&context, v1::EndTrainingRequest(), &reply));
  return status.ok() ? status : Explain(status, timeout);
}

absl::StatusOr<std::optional<uint32_t>> OperatorClient::ChangeRun(
    const std::vector<std::string>& settings, absl::Duration timeout) const {
  grpc::ClientContext context;
  context.set_deadline(SteadyDeadline(SteadyNow() + timeout));
  v1::ChangeRunRequest request;
  request.set_protocol(kProtocol);
  for (const std::string& setting : settings) request.add_settings(setting);
  v1::ChangeRunReply reply;
  const absl::Status status = FromGrpc(stub_->ChangeRun(&context, request, &reply));
  if (!status.ok()) return Explain(status, timeout);
  if (!reply.has_after_epoch()) return std::nullopt;
  return std::optional<uint32_t>(reply.after_epoch());
}

absl::StatusOr<v1::SaveCheckpointReply> OperatorClient::SaveCheckpoint(uint64_t order,
                                                                       absl::Duration wait) const {
  const absl::Duration patience = wait + kAnswerTime;
  grpc::ClientContext context;
  context.set_deadline(SteadyDeadline(SteadyNow() + patience));
  v1::SaveCheckpointRequest request;
  request.set_protocol(kProtocol);
  request.set_order(order);
  request.set_wait_ms(static_cast<uint32_t>(absl::ToInt64Milliseconds(wait)));
  v1::SaveCheckpointReply reply;
  const absl::Status status = FromGrpc(stub_->SaveCheckpoint(&context, request, &reply));
  if (!status.ok()) return Explain(status, patience);
  return reply;
}

void OperatorClient::SaveBeforeLeaving() const { (void)SaveCheckpoint(0, kSaveTime); }

std::unique_ptr<StatusStream> OperatorClient::Watch(absl::Duration interval,
                                                    const StopSignal& stop) const {
  return std::make_unique<StatusStream>(*stub_, interval, stop);
}

absl::Status OperatorClient::Explain(const absl::Status& status, absl::Duration tried) const {
  const std::string reason = Printable(std::string(status.message()));
  if (absl::IsUnimplemented(status)) {
    return NoCoordinatorAt(address_);
  }
  if (absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status)) {
    const bool says_how_long = tried > absl::ZeroDuration();
    const std::string how_long = says_how_long ? " within " + DurationText(tried) : std::string();
    return {status.code(), "no coordinator answers at " + address_ + how_long + ": " + reason};
  }
  const std::string text = "the coordinator at " + address_ + " answered: " + reason;
  return absl::IsAborted(status) ? RunFailedError(text) : absl::Status(status.code(), text);
}

}  // namespace slipstream
