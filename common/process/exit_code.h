#ifndef SLIPSTREAM_COMMON_PROCESS_EXIT_CODE_H_
#define SLIPSTREAM_COMMON_PROCESS_EXIT_CODE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace slipstream {

/// The exit codes of every program of Slipstream. The numbers from 69 on are those of <sysexits.h>.
/// A process that was asked to stop ends with 128 + the signal (stop_signal.h).
enum class ExitCode : int {
  kOk = 0,
  kInternal = 1,
  kUsage = 2,
  kUnreachable = 69,
  /// A server cannot write its log. Another process may, and goes on with what is on the disk.
  kLogNotWritten = 71,
  kIo = 74,
  kTemporary = 75,
  kConfiguration = 78,
  /// A batch system has asked to stop (SIGUSR1), and what there was is saved: started again, the
  /// run goes on.
  kPreempted = 79,
  /// From here on: how a run ended. Starting the program again does not help.
  kRunFailed = 80,
  kDiverged = 81,
  /// The runs of a grid ended well, and their results are not those of its reference.
  kNotReproduced = 82,
};

/// Returns ABORTED, for a run that has failed; ExitCodeFor tells it from other statuses of that
/// code.
absl::Status RunFailedError(absl::string_view why);

/// Does the same for a run whose weights or gradients are not finite any more.
absl::Status DivergedError(absl::string_view why);

/// Returns the exit code of a program that ends because of `status`:
///
///   | status                                           | exit code         | meaning            |
///   |--------------------------------------------------|-------------------|--------------------|
///   | OK                                               | 0 kOk             | done               |
///   | UNAVAILABLE, DEADLINE_EXCEEDED                   | 69 kUnreachable   | a peer is not there|
///   | NOT_FOUND, DATA_LOSS                             | 74 kIo            | a file             |
///   | RESOURCE_EXHAUSTED, ABORTED, FAILED_PRECONDITION | 75 kTemporary     | try again          |
///   | INVALID_ARGUMENT                                 | 78 kConfiguration | settings are wrong |
///   | UNAUTHENTICATED, PERMISSION_DENIED               | 78 kConfiguration | so are credentials |
///   | RunFailedError                                   | 80 kRunFailed     | the run failed     |
///   | DivergedError                                    | 81 kDiverged      | training diverged  |
///   | any other                                        | 1 kInternal       | a bug              |
ExitCode ExitCodeFor(const absl::Status& status);

/// Returns the exit code of a program that cannot use its configuration, which is the file at
/// `path` with `--set` of each of `overrides`: kIo if the file cannot be read, kUsage if an
/// override is not key=value, else kConfiguration.
ExitCode ConfigFailureCode(const std::string& path, const std::vector<std::string>& overrides);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_PROCESS_EXIT_CODE_H_
