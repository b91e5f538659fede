#ifndef SLIPSTREAM_DEPLOY_PSCTL_COMPLETION_COMMAND_H_
#define SLIPSTREAM_DEPLOY_PSCTL_COMPLETION_COMMAND_H_

#include "deploy/psctl/command_line.h"

namespace slipstream {

/// Prints the script that makes a shell complete psctl's command line. Returns psctl's exit code.
int CompletionCommand(const CompletionArguments& arguments);

/// Prints the candidates for the last word, one per line, for these scripts. Returns psctl's exit
/// code.
int CompleteCommand(const CompleteArguments& arguments);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_COMPLETION_COMMAND_H_
