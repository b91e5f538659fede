#include "common/process/exit_code.h"

namespace slipstream {

ExitCode ExitCodeFor(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return ExitCode::kOk;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
      return ExitCode::kUnreachable;
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kDataLoss:
      return ExitCode::kIo;
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kFailedPrecondition:
      return ExitCode::kTemporary;
    case absl::StatusCode::kInvalidArgument:
      return ExitCode::kConfiguration;
    default:
      return ExitCode::kInternal;
  }
}

}  // namespace slipstream
