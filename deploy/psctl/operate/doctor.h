#ifndef SLIPSTREAM_DEPLOY_PSCTL_OPERATE_DOCTOR_H_
#define SLIPSTREAM_DEPLOY_PSCTL_OPERATE_DOCTOR_H_

#include "deploy/psctl/command_line.h"

namespace slipstream {

/// psctl doctor: follows the path of a connection to a run step by step, from this process's own
/// files to the answer of the coordinator and the ports of all shards. Stops at the first fault,
/// and prints what it found and what to do. Takes at most a minute. Returns psctl's exit code.
int DoctorCommand(const DoctorArguments& arguments);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_OPERATE_DOCTOR_H_
