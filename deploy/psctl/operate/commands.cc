#include "deploy/psctl/operate/commands.h"

#include <fmt/format.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "common/base/duration_text.h"
#include "common/base/printable.h"
#include "common/process/exit_code.h"
#include "common/process/output_text.h"
#include "common/process/steady_time.h"
#include "common/rpc/status_conversion.h"
#include "common/rpc/steady_deadline.h"
#include "common/rpc/transport_options.h"
#include "deploy/psctl/complaint.h"
#include "deploy/psctl/operator_client.h"
#include "deploy/psctl/status/durability_view.h"
#include "proto/operation.grpc.pb.h"

namespace slipstream {
namespace {

using Credentials = std::shared_ptr<grpc::ChannelCredentials>;

// How long the coordinator may take to answer.
constexpr absl::Duration kAnswerTimeout = absl::Seconds(5);

// The coordinator is asked again and again, as it lets no call wait for long.
constexpr absl::Duration kWaitMax = absl::Seconds(5);

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
      OperatorClient(arguments.coordinator, credentials).GetStatus(kAnswerTimeout);
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

int ChangeCommand(const ChangeArguments& arguments) {
  const auto credentials = PsctlCredentials(arguments.security);
  if (!credentials.ok()) return EndWith(credentials.status());
  const absl::StatusOr<std::optional<uint32_t>> after_epoch =
      OperatorClient(arguments.coordinator, *credentials)
          .ChangeRun(arguments.settings, kAnswerTimeout);
  if (!after_epoch.ok()) return EndWith(after_epoch.status());
  const std::string when =
      after_epoch->has_value()
          ? fmt::format("from the end of epoch {} on, at the earliest", **after_epoch)
          : std::string("from the next version of each shard on");
  WriteToStdout(fmt::format("{} holds {}, for the rest of the run\n",
                            fmt::join(arguments.settings, " "), when));
  return static_cast<int>(ExitCode::kOk);
}

int StopCommand(const StopArguments& arguments) {
  const auto credentials = PsctlCredentials(arguments.security);
  if (!credentials.ok()) return EndWith(credentials.status());
  const absl::Status ended =
      OperatorClient(arguments.coordinator, *credentials).EndTraining(kAnswerTimeout);
  if (absl::IsOutOfRange(ended)) {
    WriteToStdout("the run has finished already\n");
    return static_cast<int>(ExitCode::kOk);
  }
  if (!ended.ok()) return EndWith(ended);
  WriteToStdout(
      "training ends: each worker pushes the mini-batch it is at, and where workers measure the "
      "weights (evaluation.by), one measures the final ones and saves them where its --save-dir "
      "says; psctl status --watch shows how far that is\n");
  return static_cast<int>(ExitCode::kOk);
}

int SaveCommand(const SaveArguments& arguments) {
  const auto credentials = PsctlCredentials(arguments.security);
  if (!credentials.ok()) return EndWith(credentials.status());
  const OperatorClient client(arguments.coordinator, *credentials);
  const absl::Time deadline = SteadyNow() + arguments.timeout;
  v1::SaveCheckpointReply reply;
  bool is_late = false;
  while (!reply.is_complete() && !is_late) {
    const absl::Duration left = std::max(deadline - SteadyNow(), absl::ZeroDuration());
    is_late = left <= kWaitMax;
    absl::StatusOr<v1::SaveCheckpointReply> answer =
        client.SaveCheckpoint(reply.order(), std::min(left, kWaitMax));
    if (!answer.ok()) return EndWith(answer.status());
    reply = *std::move(answer);
  }
  WriteToStdout(SavesText(reply));
  if (reply.is_complete()) return static_cast<int>(ExitCode::kOk);
  return static_cast<int>(Complain(
      ExitCode::kTemporary,
      fmt::format("not all shards have saved within {}", DurationText(arguments.timeout))));
}

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
