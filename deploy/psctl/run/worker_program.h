#ifndef SLIPSTREAM_DEPLOY_PSCTL_RUN_WORKER_PROGRAM_H_
#define SLIPSTREAM_DEPLOY_PSCTL_RUN_WORKER_PROGRAM_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/settings/run_spec.h"

namespace slipstream {

/// Returns the command of workers with the path of its program, as a user named it behind `--`;
/// empty for ps_worker. Fails if there is no such program, or if ps_worker would have no examples;
/// `example` is the command line to which a program should be added then.
absl::StatusOr<std::vector<std::string>> WorkerProgramOf(std::vector<std::string> command,
                                                         const RunSpec& spec,
                                                         const std::string& example);

/// Returns how long workers may go on once the run is over: ps_worker has nothing left to do, and a
/// user's program may evaluate and save.
absl::Duration FinishTimeout(const RunSpec& spec, bool is_own_program);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_RUN_WORKER_PROGRAM_H_
