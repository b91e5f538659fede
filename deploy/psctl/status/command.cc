#include "deploy/psctl/status/command.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "common/json/json_text.h"
#include "common/json/message_json.h"
#include "common/process/exit_code.h"
#include "common/process/stop_signal.h"
#include "deploy/psctl/complaint.h"
#include "deploy/psctl/operator_client.h"
#include "deploy/psctl/status/progress_view.h"
#include "deploy/psctl/status/screen.h"
#include "deploy/psctl/status/view.h"
#include "deploy/psctl/status/watch.h"

namespace slipstream {
namespace {

// This is long enough for a coordinator that is just starting.
constexpr absl::Duration kStatusTimeout = absl::Seconds(2);

}  // namespace

int StatusCommand(const StatusArguments& arguments) {
  std::optional<StopSignal> stop;  // A single status ends by a signal as any program does.
  if (arguments.watch) stop.emplace();
  const auto credentials = PsctlCredentials(arguments.security);
  if (!credentials.ok()) return EndWith(credentials.status());
  if (arguments.watch) return WatchStatus(arguments, *credentials, *stop);
  const OperatorClient client(arguments.coordinator, *credentials);
  const absl::StatusOr<v1::RunStatus> status = client.GetStatus(kStatusTimeout, IfRefused::kWait);
  if (!status.ok()) return EndWithAdvice(status.status());
  if (arguments.format == OutputFormat::kJson) {
    fmt::print("{}", JsonText(MessageJson(*status)));
  } else {
    StatusScreen screen;
    screen.Show(StatusPage(*status, screen.size()));
  }
  return static_cast<int>(ExitCodeFor(FailureOf(*status)));
}

}  // namespace slipstream
