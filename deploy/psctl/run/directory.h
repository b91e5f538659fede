#ifndef SLIPSTREAM_DEPLOY_PSCTL_RUN_DIRECTORY_H_
#define SLIPSTREAM_DEPLOY_PSCTL_RUN_DIRECTORY_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "deploy/psctl/run/process_end.h"

namespace slipstream {

/// The directory that keeps everything one run leaves: run.yaml, logs/, metrics.jsonl,
/// summary.json, model.safetensors and, if asked for, models on the way and the push logs.
///
/// Thread-safe: const after construction.
class RunDirectory {
 public:
  /// Makes `chosen`, or if that is empty runs/<name>-<UTC time>[-2…] under the current directory,
  /// and claims it by an empty run.yaml. Fails if it cannot be made, or if `chosen` already keeps a
  /// run or one that starts at the same time claims it: results are not mixed. Fails, too, with
  /// INVALID_ARGUMENT, if `chosen` exists and another user could lead the run's files elsewhere.
  static absl::StatusOr<RunDirectory> Create(const std::string& chosen, std::string_view name,
                                             absl::Time now);

  /// Makes `path` unless it is there, for several processes that leave their files together. Fails
  /// as Create, but does not claim it.
  static absl::StatusOr<RunDirectory> Share(const std::string& path);

  /// Returns the run's name as the name of a folder; a run's name may be any text.
  static std::string FolderName(std::string_view name);

  /// Opens the directory at `path`, which a run has left.
  static RunDirectory Of(std::string path) { return RunDirectory(std::move(path)); }

  /// Removes the claim of Create. For a run that cannot begin.
  void GiveUp() const;

  const std::string& path() const { return path_; }
  std::string ConfigPath() const { return path_ + "/run.yaml"; }
  std::string MetricsPath() const { return path_ + "/metrics.jsonl"; }
  std::string SummaryPath() const { return path_ + "/summary.json"; }
  std::string ModelPath() const { return path_ + "/model.safetensors"; }
  std::string CheckpointsPath() const { return path_ + "/checkpoints"; }
  std::string LogPath(const ProcessName& process) const;

  /// Returns the paths of the model files in the directory: those of epochs in their order, then
  /// the final one.
  std::vector<std::string> Models() const;
  std::string PortFilePath(const ProcessName& server) const;

 private:
  explicit RunDirectory(std::string path) : path_(std::move(path)) {}

  std::string path_;
};

/// The lines of a log to quote if none reports an error.
enum class IfNoError { kQuoteLast, kQuoteNone };

/// Returns the last `lines_max` lines that report an error, or if none does, those that `if_none`
/// selects. Empty if there is no such file. Reads only the end of a long file.
std::vector<std::string> LastErrorLines(const std::string& log_path, size_t lines_max,
                                        IfNoError if_none = IfNoError::kQuoteLast);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_RUN_DIRECTORY_H_
