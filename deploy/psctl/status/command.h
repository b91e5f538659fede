#ifndef SLIPSTREAM_DEPLOY_PSCTL_STATUS_COMMAND_H_
#define SLIPSTREAM_DEPLOY_PSCTL_STATUS_COMMAND_H_

#include "deploy/psctl/command_line.h"

namespace slipstream {

/// Prints the status that the coordinator of a running cluster reports. Returns psctl's exit code.
int StatusCommand(const StatusArguments& arguments);

/// Prints the events that the coordinator of a running cluster keeps; if told to follow, also those
/// to come, until the run is over. Returns psctl's exit code.
int EventsCommand(const EventsArguments& arguments);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_STATUS_COMMAND_H_
