#include "deploy/psctl/drain_command.h"

#include <fmt/format.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>

#include <map>
#include <memory>
#include <string>

#include "common/base/duration_text.h"
#include "common/base/printable.h"
#include "common/process/exit_code.h"
#include "common/process/output_text.h"
#include "common/process/steady_time.h"
#include "common/rpc/status_conversion.h"
#include "common/rpc/steady_deadline.h"
#include "common/rpc/transport_options.h"
#include "deploy/psctl/config_loading.h"
#include "deploy/psctl/durability_view.h"
#include "deploy/psctl/operator_client.h"
#include "proto/operation.grpc.pb.h"

namespace slipstream {
namespace {

using Credentials = std::shared_ptr<grpc::ChannelCredentials>;

constexpr absl::Duration kAddressesTimeout = absl::Seconds(5);

/// Ends one server, and returns what it says at its end.
absl::StatusOr<v1::DrainReply> DrainOne(uint32_t shard, const std::string& address,
                                        const Credentials& credentials, absl::Duration timeout) {
  const auto stub =
      v1::Operation::NewStub(grpc::CreateCustomChannel(address, credentials, ClientArguments()));
  grpc::ClientContext context;
  context.set_deadline(SteadyDeadline(SteadyNow() + timeout));
  v1::DrainReply reply;
  const absl::Status status = FromGrpc(stub->Drain(&context, v1::DrainRequest(), &reply));
  if (status.ok()) return reply;
  if (absl::IsDeadlineExceeded(status)) {
    return absl::DeadlineExceededError(
        fmt::format("server {} at {} has not drained within {}; it may still do so", shard, address,
                    DurationText(timeout)));
  }
  return absl::Status(status.code(),
                      fmt::format("server {} at {} did not drain: {}", shard, address,
                                  Printable(std::string(status.message()))));
}

/// Returns the addresses of the chosen servers by shard. The coordinator has told them.
absl::StatusOr<std::map<uint32_t, std::string>> ChosenServers(const DrainArguments& arguments,
                                                              const Credentials& credentials) {
  const absl::StatusOr<v1::RunStatus> status =
      OperatorClient(arguments.coordinator, credentials).GetStatus(kAddressesTimeout);
  if (!status.ok()) return status.status();
  std::map<uint32_t, std::string> chosen;
  for (const v1::ShardStatus& shard : status->shards()) {
    if (arguments.server.value_or(shard.shard()) != shard.shard()) continue;
    chosen[shard.shard()] = Printable(shard.address());
  }
  if (chosen.empty()) {
    return absl::FailedPreconditionError(
        fmt::format("--server {}: the run has no such server, or it has not come yet",
                    arguments.server.value_or(0)));
  }
  return chosen;
}

}  // namespace

int DrainCommand(const DrainArguments& arguments) {
  const auto credentials = PsctlCredentials(arguments.security);
  if (!credentials.ok()) return EndWith(credentials.status());
  const auto chosen = ChosenServers(arguments, *credentials);
  if (!chosen.ok()) return EndWith(chosen.status());
  int code = static_cast<int>(ExitCode::kOk);
  // The coordinator, with shard 0, stays as long as there are others that report to it.
  for (auto each = chosen->rbegin(); each != chosen->rend(); ++each) {
    const auto& [shard, address] = *each;
    const absl::StatusOr<v1::DrainReply> reply =
        DrainOne(shard, address, *credentials, arguments.timeout);
    if (reply.ok()) {
      WriteToStdout(DrainedText(shard, *reply));
      continue;
    }
    const int failed = EndWith(reply.status());
    if (code == static_cast<int>(ExitCode::kOk)) code = failed;
  }
  return code;
}

}  // namespace slipstream
