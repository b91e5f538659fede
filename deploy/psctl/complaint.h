#ifndef SLIPSTREAM_DEPLOY_PSCTL_COMPLAINT_H_
#define SLIPSTREAM_DEPLOY_PSCTL_COMPLAINT_H_

#include <string_view>

#include "absl/status/status.h"
#include "common/process/exit_code.h"

namespace slipstream {

/// Prints `psctl: error: message` on stderr. Returns `code`.
ExitCode Complain(ExitCode code, std::string_view message);

/// The same for a failure. Returns the exit code that it stands for.
ExitCode Complain(const absl::Status& failure);

/// The same, as main() returns it.
int EndWith(const absl::Status& failure);

/// The same. If a peer does not answer, it names the command that finds out why.
int EndWithAdvice(const absl::Status& failure);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_COMPLAINT_H_
