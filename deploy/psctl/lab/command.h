#ifndef SLIPSTREAM_DEPLOY_PSCTL_LAB_COMMAND_H_
#define SLIPSTREAM_DEPLOY_PSCTL_LAB_COMMAND_H_

#include "deploy/psctl/command_line.h"

namespace slipstream {

/// `psctl lab run`, `status` and `report`: runs the cells of a grid that have no result yet, says
/// how far they are, and writes the tables and plots. Returns the exit code.
int LabCommand(const LabArguments& arguments);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_LAB_COMMAND_H_
