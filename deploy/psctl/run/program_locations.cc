#include "deploy/psctl/run/program_locations.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_split.h"
#include "common/process/exit_code.h"
#include "deploy/psctl/complaint.h"

namespace slipstream {
namespace {

namespace fs = std::filesystem;

bool IsExecutable(const std::string& path) {
  std::error_code error;
  return fs::is_regular_file(path, error) && access(path.c_str(), X_OK) == 0;
}

std::string SelfPath() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error).string();
}

absl::StatusOr<std::string> FindProgram(std::string_view program, std::string_view package,
                                        const char* variable, std::string_view bin_dir) {
  std::vector<std::string> candidates = CandidatePaths(program, package, SelfPath(), bin_dir);
  const char* const named = bin_dir.empty() ? std::getenv(variable) : nullptr;
  if (named != nullptr && *named != '\0') candidates = {named};
  std::string tried;
  for (const std::string& candidate : candidates) {
    if (IsExecutable(candidate)) return candidate;
    tried += "\n  " + candidate;
  }
  return absl::NotFoundError("cannot find the program " + std::string(program) + "; tried" + tried +
                             "\nname its folder with --bin-dir, or itself with " + variable);
}

}  // namespace

std::vector<std::string> CandidatePaths(std::string_view program, std::string_view package,
                                        std::string_view self, std::string_view bin_dir) {
  if (!bin_dir.empty()) return {(fs::path(bin_dir) / program).string()};
  const fs::path folder = fs::path(self).parent_path();
  const fs::path from_root = fs::path(package) / program;
  return {
      (folder / program).string(),
      // psctl is deploy/psctl/psctl there.
      (folder.parent_path().parent_path() / from_root).string(),
      (fs::path(std::string(self) + ".runfiles") / "slipstream" / from_root).string(),
  };
}

absl::StatusOr<ProgramPaths> FindPrograms(std::string_view bin_dir) {
  absl::StatusOr<std::string> server =
      FindProgram("ps_server", "server", "PS_SERVER_BINARY", bin_dir);
  if (!server.ok()) return server.status();
  absl::StatusOr<std::string> worker =
      FindProgram("ps_worker", "worker", "PS_WORKER_BINARY", bin_dir);
  if (!worker.ok()) return worker.status();
  return ProgramPaths{.server = *std::move(server), .worker = *std::move(worker)};
}

absl::StatusOr<std::string> FindOnPath(const std::string& program) {
  if (program.find('/') != std::string::npos) {
    if (IsExecutable(program)) return program;
    return absl::NotFoundError("cannot execute " + program);
  }
  const char* const path = std::getenv("PATH");
  const std::vector<std::string> folders = absl::StrSplit(path == nullptr ? "" : path, ':');
  for (const std::string& folder : folders) {
    std::string candidate = (fs::path(folder) / program).string();
    if (IsExecutable(candidate)) return candidate;
  }
  return absl::NotFoundError("there is no program " + program + " on the PATH");
}

absl::StatusOr<std::string> FindLab(std::string_view bin_dir) {
  return FindProgram("ps_lab", "deploy/lab", "PS_LAB_BINARY", bin_dir);
}

absl::StatusOr<std::string> FindEvaluator(std::string_view bin_dir) {
  return FindProgram("ps_evaluate", "worker", "PS_EVALUATE_BINARY", bin_dir);
}

int Become(const std::string& program, const std::vector<std::string>& arguments) {
  std::vector<char*> words = {const_cast<char*>(program.c_str())};  // execv takes no const.
  for (const std::string& argument : arguments)
    words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);
  execv(program.c_str(), words.data());
  const std::string reason = std::strerror(errno);
  return static_cast<int>(Complain(ExitCode::kIo, "cannot start " + program + ": " + reason));
}

}  // namespace slipstream
