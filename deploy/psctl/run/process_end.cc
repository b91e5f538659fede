#include "deploy/psctl/run/process_end.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "common/process/exit_code.h"
#include "common/process/stop_signal.h"

namespace slipstream {
namespace {

std::string_view RoleText(Role role) {
  switch (role) {
    case Role::kServer:
      return "server";
    case Role::kWorker:
      return "worker";
    case Role::kAggregator:
      return "aggregator";
  }
  return "";
}

std::string NumberText(const ProcessName& name) {
  if (name.role != Role::kAggregator) return fmt::format("{}", name.number);
  return fmt::format("{}.{}", name.group, name.number);
}

std::string_view Meaning(int exit_code) {
  switch (static_cast<ExitCode>(exit_code)) {
    case ExitCode::kOk:
      return "done";
    case ExitCode::kInternal:
      return "failed";  // So do programs of users, by an exception of theirs.
    case ExitCode::kUsage:
      return "usage";
    case ExitCode::kUnreachable:
      return "peer unreachable";
    case ExitCode::kLogNotWritten:
      return "log not written";
    case ExitCode::kIo:
      return "input or output";
    case ExitCode::kTemporary:
      return "temporary failure";
    case ExitCode::kConfiguration:
      return "configuration";
    case ExitCode::kPreempted:
      return "preempted";
    case ExitCode::kRunFailed:
      return "run failed";
    case ExitCode::kDiverged:
      return "training diverged";
    case ExitCode::kNotReproduced:
      return "reference not reproduced";
  }
  return "";
}

}  // namespace

bool IsStopCode(int exit_code) { return std::ranges::count(kStopSignals, exit_code - 128) > 0; }

std::string ProcessName::Slug() const {
  return fmt::format("{}-{}", RoleText(role), NumberText(*this));
}

std::string ProcessName::Text() const {
  return fmt::format("{} {}", RoleText(role), NumberText(*this));
}

std::string ProcessEnd::HowText() const {
  if (signal != 0) return fmt::format("signal {} ({})", signal, strsignal(signal));
  if (IsStopCode(exit_code)) {
    return fmt::format("exit code {} (told to stop)", exit_code);
  }
  const std::string_view meaning = Meaning(exit_code);
  if (meaning.empty()) return fmt::format("exit code {}", exit_code);
  return fmt::format("exit code {} ({})", exit_code, meaning);
}

}  // namespace slipstream
