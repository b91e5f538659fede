#ifndef SLIPSTREAM_DEPLOY_PSCTL_LAB_LAB_DIRECTORY_H_
#define SLIPSTREAM_DEPLOY_PSCTL_LAB_LAB_DIRECTORY_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/files/file_descriptor.h"
#include "deploy/psctl/lab/cells.h"

namespace slipstream {

/// The state of a cell.
enum class CellState : uint8_t {
  kPending,  // It has not been run, or was cut off.
  kRunning,  // Its unfinished directory is there.
  kDone,     // It has a result, also if it diverged.
  kFailed,
};

/// The measured cost of a cell, for estimates.
struct CellCost {
  double wall_seconds = 0;
  double cpu_seconds = 0;

  /// The main memory that the cell's processes held at most, or an upper bound of it.
  uint64_t peak_bytes = 0;
};

/// The directory of a grid's cells. A cell is an ordinary run directory under cells/, by its id and
/// the build of the program that carried it out: <id>-<build>. It is written as <name>.unfinished
/// and gets its name, or <name>.failed, when it is complete, so that a crash at any moment costs
/// only the cells under way. A result of another build counts only if that is wanted.
///
/// Thread-safe: const after construction.
class LabDirectory {
 public:
  /// `build` is that of the present program (CellProgram); `takes_any_build`: where it has no
  /// result, the latest one of another build counts.
  LabDirectory(std::string path, std::string build, bool takes_any_build = false);

  /// Makes the directory and locks it. The lock lasts as long as the result. Fails with
  /// FAILED_PRECONDITION if another process has the lock.
  absl::StatusOr<FileDescriptor> Lock() const;

  /// Returns whether another process has the lock. Takes none itself.
  bool IsLocked() const;

  const std::string& path() const { return path_; }
  std::string CellPath(const std::string& id) const { return PathOf(id, build_); }
  std::string FailedPath(const std::string& id) const { return CellPath(id) + ".failed"; }
  std::string UnfinishedPath(const std::string& id) const { return CellPath(id) + ".unfinished"; }
  std::string SettingsPath(const std::string& id) const {
    return path_ + "/settings/" + id + ".yaml";
  }
  std::string WorldPath(const std::string& id) const {
    return path_ + "/settings/" + id + ".world.yaml";
  }

  /// Returns the build whose result counts; nothing if the cell has none.
  std::optional<std::string> BuildOf(const std::string& id) const;

  /// Returns where the result that counts lies. REQUIRES: there is one.
  std::string ResultPath(const std::string& id) const { return PathOf(id, *BuildOf(id)); }

  /// Says how many of the cells have results of other builds alone, which do not count; empty if
  /// none has.
  std::string UnusedText(const std::vector<Cell>& cells) const;

  CellState StateOf(const std::string& id) const;

  /// Writes the cell's settings, and an empty unfinished directory, which replaces any other.
  absl::Status Begin(const Cell& cell) const;

  /// Gives an unfinished cell its name; `has_failed` decides which. Paths in its files follow.
  absl::Status Settle(const Cell& cell, bool has_failed, const CellCost& cost) const;

  /// Removes the unfinished directory of a cell, if there is one.
  void GiveUp(const std::string& id) const;

  /// Returns the cost that Settle has written of the result that counts; nothing if there is none.
  std::optional<CellCost> CostOf(const std::string& id) const;

 private:
  std::string LockPath() const { return path_ + "/lock"; }

  std::string PathOf(const std::string& id, const std::string& build) const {
    return path_ + "/cells/" + id + "-" + build;
  }

  const std::string path_;
  const std::string build_;
  const bool takes_any_build_;

  // By id: the latest result of another build.
  std::map<std::string, std::string> others_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_LAB_LAB_DIRECTORY_H_
