#include "common/process/exit_code.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

namespace slipstream {
namespace {

bool IsReadableFile(const std::string& path) {
  std::error_code error;
  return access(path.c_str(), R_OK) == 0 && !std::filesystem::is_directory(path, error);
}

bool IsKeyAndValue(const std::string& override) {
  const size_t equals = override.find('=');
  return equals != std::string::npos && equals > 0;
}

}  // namespace

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
    case absl::StatusCode::kUnauthenticated:
    case absl::StatusCode::kPermissionDenied:
      return ExitCode::kConfiguration;
    default:
      return ExitCode::kInternal;
  }
}

ExitCode ConfigFailureCode(const std::string& path, const std::vector<std::string>& overrides) {
  if (!IsReadableFile(path)) return ExitCode::kIo;
  const bool are_pairs = std::ranges::all_of(overrides, IsKeyAndValue);
  return are_pairs ? ExitCode::kConfiguration : ExitCode::kUsage;
}

}  // namespace slipstream
