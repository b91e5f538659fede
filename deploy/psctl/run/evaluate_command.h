#ifndef SLIPSTREAM_DEPLOY_PSCTL_RUN_EVALUATE_COMMAND_H_
#define SLIPSTREAM_DEPLOY_PSCTL_RUN_EVALUATE_COMMAND_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "deploy/psctl/command_line.h"

namespace slipstream {

/// Returns the command-line arguments for ps_evaluate. For a run directory it measures the final
/// model, under the directory's run.yaml; for a model file, the file under the settings that it
/// holds. `arguments.config` replaces these settings if it is not empty. Fails with NOT_FOUND if a
/// directory has no model.
absl::StatusOr<std::vector<std::string>> EvaluatorArguments(const EvaluateArguments& arguments);

/// Measures a saved model. Replaces this process by ps_evaluate, which knows nets and data. Returns
/// only if the arguments are wrong or ps_evaluate cannot be started, with psctl's exit code.
int EvaluateCommand(const EvaluateArguments& arguments);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_RUN_EVALUATE_COMMAND_H_
