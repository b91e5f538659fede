#ifndef SLIPSTREAM_DEPLOY_PSCTL_PLAN_COMMAND_H_
#define SLIPSTREAM_DEPLOY_PSCTL_PLAN_COMMAND_H_

#include "deploy/psctl/command_line.h"

namespace slipstream {

/// Runs `psctl plan`: prints what a run's speed, staleness and use of its machines will be, or with
/// --check, what was predicted of a run that has ended beside what came. Costs are those of flags,
/// then of the run named by --from, then measured by ps_lab as far as some are missing. Returns the
/// exit code.
int PlanCommand(const PlanArguments& arguments);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_PLAN_COMMAND_H_
