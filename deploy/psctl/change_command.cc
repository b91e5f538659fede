#include "deploy/psctl/change_command.h"

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>

#include "common/process/exit_code.h"
#include "common/process/output_text.h"
#include "deploy/psctl/config_loading.h"
#include "deploy/psctl/operator_client.h"

namespace slipstream {
namespace {

constexpr absl::Duration kChangeTimeout = absl::Seconds(5);

}  // namespace

int ChangeCommand(const ChangeArguments& arguments) {
  const auto credentials = PsctlCredentials(arguments.security);
  if (!credentials.ok()) return EndWith(credentials.status());
  const absl::StatusOr<std::optional<uint32_t>> after_epoch =
      OperatorClient(arguments.coordinator, *credentials)
          .ChangeRun(arguments.settings, kChangeTimeout);
  if (!after_epoch.ok()) return EndWith(after_epoch.status());
  const std::string when =
      after_epoch->has_value()
          ? fmt::format("from the end of epoch {} on, at the earliest", **after_epoch)
          : std::string("from the next version of each shard on");
  WriteToStdout(fmt::format("{} holds {}, for the rest of the run\n",
                            fmt::join(arguments.settings, " "), when));
  return static_cast<int>(ExitCode::kOk);
}

}  // namespace slipstream
