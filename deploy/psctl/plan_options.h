#ifndef SLIPSTREAM_DEPLOY_PSCTL_PLAN_OPTIONS_H_
#define SLIPSTREAM_DEPLOY_PSCTL_PLAN_OPTIONS_H_

#include <CLI/CLI.hpp>

#include "deploy/psctl/command_line.h"

namespace slipstream {

/// Adds the options of `psctl plan`, which fill in `arguments`.
void AddPlanOptions(CLI::App& command, PlanArguments& arguments);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_PLAN_OPTIONS_H_
