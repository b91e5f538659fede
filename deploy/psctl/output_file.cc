#include "deploy/psctl/output_file.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

namespace slipstream {

namespace fs = std::filesystem;

absl::Status CheckOutputFile(const std::string& path, bool force) {
  std::error_code error;
  if (fs::is_directory(path, error)) {
    return absl::DataLossError(path + " is a directory: name the file to write");
  }
  if (!force && fs::exists(path, error)) {
    return absl::DataLossError(path + " exists; --force replaces it");
  }
  const fs::path directory = fs::path(path).parent_path();
  if (!directory.empty() && !fs::is_directory(directory, error)) {
    return absl::DataLossError(
        fmt::format("cannot write {}: there is no directory {}", path, directory.string()));
  }
  return absl::OkStatus();
}

}  // namespace slipstream
