#include "deploy/psctl/status_command.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "common/json/json_text.h"
#include "common/json/message_json.h"
#include "common/process/exit_code.h"
#include "common/process/stop_signal.h"
#include "deploy/psctl/config_loading.h"
#include "deploy/psctl/operator_client.h"
#include "deploy/psctl/progress_view.h"
#include "deploy/psctl/status_screen.h"
#include "deploy/psctl/status_view.h"
#include "deploy/psctl/status_watch.h"

namespace slipstream {
namespace {

// This is long enough for a coordinator that is just starting.
constexpr absl::Duration kStatusTimeout = absl::Seconds(2);

}  // namespace

int StatusCommand(const StatusArguments& arguments) {
  std::optional<StopSignal> stop;  // A single status ends by a signal as any program does.
  if (arguments.watch) stop.emplace();
  const auto credentials = PsctlCredentials(arguments.security);
  if (!credentials.ok()) {
    const std::string message(credentials.status().message());
    return static_cast<int>(Complain(ExitCodeFor(credentials.status()), message));
  }
  if (arguments.watch) return WatchStatus(arguments, *credentials, *stop);
  const OperatorClient client(arguments.coordinator, *credentials);
  const absl::StatusOr<v1::RunStatus> status = client.GetStatus(kStatusTimeout, IfRefused::kWait);
  if (!status.ok()) {
    const bool is_away =
        absl::IsUnavailable(status.status()) || absl::IsDeadlineExceeded(status.status());
    const std::string message =
        std::string(status.status().message()) + (is_away ? "; psctl doctor finds out why" : "");
    return static_cast<int>(Complain(ExitCodeFor(status.status()), message));
  }
  if (arguments.format == OutputFormat::kJson) {
    fmt::print("{}", JsonText(MessageJson(*status)));
  } else {
    StatusScreen screen;
    screen.Show(StatusPage(*status, screen.size()));
  }
  return static_cast<int>(ExitCodeFor(FailureOf(*status)));
}

}  // namespace slipstream
