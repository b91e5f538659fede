#include "deploy/psctl/status/command.h"

#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "common/json/json_text.h"
#include "common/json/message_json.h"
#include "common/process/exit_code.h"
#include "common/process/stop_signal.h"
#include "deploy/psctl/complaint.h"
#include "deploy/psctl/operator_client.h"
#include "deploy/psctl/status/event_lines.h"
#include "deploy/psctl/status/progress_view.h"
#include "deploy/psctl/status/screen.h"
#include "deploy/psctl/status/view.h"
#include "deploy/psctl/status/watch.h"

namespace slipstream {
namespace {

// This is long enough for a coordinator that is just starting.
constexpr absl::Duration kStatusTimeout = absl::Seconds(2);

// How often --follow looks for events.
constexpr absl::Duration kEventsInterval = absl::Milliseconds(500);

/// Shows the status, or prints it as JSON, again and again.
int WatchStatus(const StatusArguments& arguments,
                const std::shared_ptr<grpc::ChannelCredentials>& credentials,
                const StopSignal& stop) {
  StatusScreen screen;
  const bool is_json = arguments.format == OutputFormat::kJson;
  const auto show = [&](const v1::RunStatus& status) {
    if (!is_json) return screen.Show(StatusPage(status, screen.size()));
    fmt::print("{}", JsonLine(MessageJson(status)));
    std::fflush(stdout);
  };
  const auto end = [&](const v1::RunStatus& last) {
    if (!is_json) screen.Keep(StatusPage(last, {.columns = screen.size().columns}));
  };
  const auto note = [&](std::string_view text) { screen.Note(text); };
  return FollowStatus({.coordinator = arguments.coordinator,
                       .interval = arguments.interval,
                       .wait = arguments.wait,
                       .show = show,
                       .end = end,
                       .note = note},
                      credentials, stop);
}

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

int EventsCommand(const EventsArguments& arguments) {
  std::optional<StopSignal> stop;
  if (arguments.follow) stop.emplace();
  const auto credentials = PsctlCredentials(arguments.security);
  if (!credentials.ok()) return EndWith(credentials.status());
  EventLines lines(arguments.format == OutputFormat::kJson);
  const auto show = [&lines](const v1::RunStatus& status) {
    fmt::print("{}", lines.Next(status));
    std::fflush(stdout);
  };
  if (arguments.follow) {
    const auto note = [](std::string_view text) { fmt::print(stderr, "{}\n", text); };
    return FollowStatus({.coordinator = arguments.coordinator,
                         .interval = kEventsInterval,
                         .wait = arguments.wait,
                         .show = show,
                         .end = [](const v1::RunStatus&) {},
                         .note = note},
                        *credentials, *stop);
  }
  const OperatorClient client(arguments.coordinator, *credentials);
  const absl::StatusOr<v1::RunStatus> status = client.GetStatus(kStatusTimeout, IfRefused::kWait);
  if (!status.ok()) return EndWithAdvice(status.status());
  show(*status);
  return static_cast<int>(ExitCodeFor(FailureOf(*status)));
}

}  // namespace slipstream
