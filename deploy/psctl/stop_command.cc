#include "deploy/psctl/stop_command.h"

#include <string>

#include "common/process/exit_code.h"
#include "common/process/output_text.h"
#include "deploy/psctl/config_loading.h"
#include "deploy/psctl/operator_client.h"

namespace slipstream {
namespace {

constexpr absl::Duration kEndTimeout = absl::Seconds(5);

}  // namespace

int StopCommand(const StopArguments& arguments) {
  const auto credentials = PsctlCredentials(arguments.security);
  if (!credentials.ok()) return EndWith(credentials.status());
  const absl::Status ended =
      OperatorClient(arguments.coordinator, *credentials).EndTraining(kEndTimeout);
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

}  // namespace slipstream
