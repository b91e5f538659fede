#ifndef SLIPSTREAM_DEPLOY_PSCTL_OPERATE_PULL_H_
#define SLIPSTREAM_DEPLOY_PSCTL_OPERATE_PULL_H_

#include "deploy/psctl/command_line.h"

namespace slipstream {

/// Reads the newest weights of a run, as a reader that workers do not wait for, and writes them to
/// a model file, whole or not at all. Waits for the run's first weights. A signal ends it. Returns
/// psctl's exit code.
int PullCommand(const PullArguments& arguments);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_OPERATE_PULL_H_
