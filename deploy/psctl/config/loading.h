#ifndef SLIPSTREAM_DEPLOY_PSCTL_CONFIG_LOADING_H_
#define SLIPSTREAM_DEPLOY_PSCTL_CONFIG_LOADING_H_

#include <variant>
#include <vector>

#include "common/config/diagnostic.h"
#include "common/process/exit_code.h"
#include "common/settings/run_spec.h"
#include "deploy/psctl/command_line.h"

namespace slipstream {

/// Prints every error on stderr, one line each, and their number if there are several.
void PrintDiagnostics(const std::vector<Diagnostic>& diagnostics);

/// Returns the resolved settings of a run, or all errors in them, including those that concern
/// several keys, such as more shards than the model can be cut into.
std::variant<RunSpec, std::vector<Diagnostic>> LoadConfig(const ConfigArguments& arguments);

/// Calls LoadConfig and prints its errors on stderr.
std::variant<RunSpec, ExitCode> LoadConfigOrComplain(const ConfigArguments& arguments);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_CONFIG_LOADING_H_
