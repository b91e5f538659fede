#include "common/process/exit_code.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/strings/cord.h"

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

// The payloads by which a status says how a run ended.
constexpr char kFailed[] = "slipstream/run_failed";
constexpr char kDiverged[] = "slipstream/diverged";

absl::Status EndOfRun(const char* payload, absl::string_view why) {
  absl::Status status = absl::AbortedError(why);
  status.SetPayload(payload, absl::Cord());
  return status;
}

}  // namespace

absl::Status RunFailedError(absl::string_view why) { return EndOfRun(kFailed, why); }

absl::Status DivergedError(absl::string_view why) { return EndOfRun(kDiverged, why); }

ExitCode ExitCodeFor(const absl::Status& status) {
  if (status.GetPayload(kFailed).has_value()) return ExitCode::kRunFailed;
  if (status.GetPayload(kDiverged).has_value()) return ExitCode::kDiverged;
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
