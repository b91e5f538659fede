#ifndef SLIPSTREAM_DEPLOY_PSCTL_CONFIG_LOADING_H_
#define SLIPSTREAM_DEPLOY_PSCTL_CONFIG_LOADING_H_

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/config/diagnostic.h"
#include "common/process/exit_code.h"
#include "common/run/run_spec.h"
#include "deploy/psctl/command_line.h"

namespace slipstream {

/// `psctl: error: message` on stderr; returns `code`.
ExitCode Complain(ExitCode code, std::string_view message);

/// Everything that is wrong on stderr, one line each, and how many if several.
void PrintDiagnostics(const std::vector<Diagnostic>& diagnostics);

/// The resolved settings of a run that can be planned, or all that is wrong with them: also what
/// only the whole shows, such as more shards than the model can be cut into.
std::variant<RunSpec, std::vector<Diagnostic>> LoadConfig(const ConfigArguments& arguments);

/// LoadConfig with what is wrong on stderr already.
std::variant<RunSpec, ExitCode> LoadConfigOrComplain(const ConfigArguments& arguments);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_CONFIG_LOADING_H_
