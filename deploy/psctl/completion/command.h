#ifndef SLIPSTREAM_DEPLOY_PSCTL_COMPLETION_COMMAND_H_
#define SLIPSTREAM_DEPLOY_PSCTL_COMPLETION_COMMAND_H_

#include "deploy/psctl/command_line.h"

namespace slipstream {

/// Prints a script that lets a shell complete psctl's command lines. Returns psctl's exit code.
int CompletionCommand(const CompletionArguments& arguments);

/// Prints the candidates for the last word, one per line. The scripts of CompletionCommand call it.
/// Returns psctl's exit code.
int CompleteCommand(const CompleteArguments& arguments);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_COMPLETION_COMMAND_H_
