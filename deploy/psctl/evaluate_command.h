#ifndef SLIPSTREAM_DEPLOY_PSCTL_EVALUATE_COMMAND_H_
#define SLIPSTREAM_DEPLOY_PSCTL_EVALUATE_COMMAND_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "deploy/psctl/command_line.h"

namespace slipstream {

/// What ps_evaluate is told to measure: of a run directory its final model under its run.yaml, else
/// the file under the settings that it holds. NOT_FOUND if a directory keeps no model.
absl::StatusOr<std::vector<std::string>> EvaluatorArguments(const EvaluateArguments& arguments);

/// Measures a saved model: becomes ps_evaluate, which knows nets and data, and so returns only if
/// that cannot be started, with psctl's exit code.
int EvaluateCommand(const EvaluateArguments& arguments);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_EVALUATE_COMMAND_H_
