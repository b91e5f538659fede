#include "deploy/psctl/save_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "common/base/duration_text.h"
#include "common/process/exit_code.h"
#include "common/process/output_text.h"
#include "common/process/steady_time.h"
#include "deploy/psctl/config_loading.h"
#include "deploy/psctl/durability_view.h"
#include "deploy/psctl/operator_client.h"

namespace slipstream {
namespace {

// The coordinator is asked again and again, as it lets no call wait for long.
constexpr absl::Duration kWaitMax = absl::Seconds(5);

}  // namespace

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

}  // namespace slipstream
