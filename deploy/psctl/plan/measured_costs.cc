#include "deploy/psctl/plan/measured_costs.h"

#include <poll.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <system_error>

#include "deploy/psctl/prediction/cost_sources.h"
#include "deploy/psctl/run/child_process.h"
#include "deploy/psctl/run/program_locations.h"

namespace slipstream {
namespace {

namespace fs = std::filesystem;

std::string ReadText(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Two files for what a program says, which are gone with the object.
class SpokenFiles {
 public:
  SpokenFiles() {
    std::string path = (fs::temp_directory_path() / "psctl-plan-XXXXXX").string();
    if (mkdtemp(path.data()) != nullptr) directory_ = path;
  }
  ~SpokenFiles() {
    std::error_code error;
    if (!directory_.empty()) fs::remove_all(directory_, error);
  }
  SpokenFiles(const SpokenFiles&) = delete;
  SpokenFiles& operator=(const SpokenFiles&) = delete;

  bool is_there() const { return !directory_.empty(); }
  std::string stdout_path() const { return directory_ + "/stdout"; }
  std::string stderr_path() const { return directory_ + "/stderr"; }

 private:
  std::string directory_;
};

}  // namespace

absl::StatusOr<KnownCosts> MeasureCosts(const ConfigArguments& config, const RunSpec& run,
                                        const std::string& bin_dir) {
  const absl::StatusOr<std::string> program = FindLab(bin_dir);
  if (!program.ok()) return program.status();
  const SpokenFiles files;
  if (!files.is_there()) return absl::NotFoundError("cannot make a directory for ps_lab's answer");
  ChildProcess::Options options = {.command = {*program, "measure", config.path},
                                   .environment = {},
                                   .stdout_path = files.stdout_path(),
                                   .stderr_path = files.stderr_path()};
  // All of it: what PS_ variables override counts for ps_lab as it does for psctl.
  for (char** variable = environ; *variable != nullptr; ++variable) {
    options.environment.emplace_back(*variable);
  }
  for (const std::string& override : config.overrides) {
    options.command.insert(options.command.end(), {"--set", override});
  }
  absl::StatusOr<ChildProcess> child = ChildProcess::Start(options);
  if (!child.ok()) return child.status();
  std::optional<ChildProcess::End> end;
  while (!(end = child->Poll())) {
    pollfd waiting = {.fd = child->fd(), .events = POLLIN, .revents = 0};
    poll(&waiting, 1, /*timeout=*/1000);
  }
  if (end->exit_code != 0 || end->signal != 0) {
    std::string why = ReadText(files.stderr_path());
    while (why.ends_with('\n')) why.pop_back();
    return absl::InvalidArgumentError("ps_lab measure failed: " + why);
  }
  return ParseMeasured(ReadText(files.stdout_path()), run);
}

}  // namespace slipstream
