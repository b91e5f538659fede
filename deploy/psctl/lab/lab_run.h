#ifndef SLIPSTREAM_DEPLOY_PSCTL_LAB_LAB_RUN_H_
#define SLIPSTREAM_DEPLOY_PSCTL_LAB_LAB_RUN_H_

#include <cstddef>
#include <cstdint>
#include <list>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/process/stop_signal.h"
#include "deploy/psctl/lab/cell_program.h"
#include "deploy/psctl/lab/cells.h"
#include "deploy/psctl/lab/cost_model.h"
#include "deploy/psctl/lab/lab_directory.h"
#include "deploy/psctl/run/child_process.h"

namespace slipstream {

/// Returns the cores that cells take, those of one cell together: the first `budget.cores` of
/// `available`, cut into groups. Fails if there are not so many.
absl::StatusOr<std::vector<std::vector<int>>> CoreGroups(const Grid& grid,
                                                         const std::vector<int>& available);

/// Returns the numbers of the cores that this process may use.
std::vector<int> AvailableCores();

/// Runs the cells of a grid that have no result, side by side, each group of cores one at a time.
/// A cell that fails does not stop the others, unless its program refuses its settings, or cannot
/// read or write files: the others would fail, too. Progress goes to stderr.
///
/// Not thread-safe: main's thread owns it.
class LabRun {
 public:
  struct Options {
    /// The program that runs a cell: ps_lab, or psctl itself.
    CellProgram program;

    /// Passed on to psctl run; may be empty.
    std::string bin_dir;
    std::vector<std::vector<int>> core_groups;

    /// All that a cell's processes inherit, beside the program's own.
    std::vector<std::string> environment;
    bool only_failed = false;
  };

  /// All of them must outlive this object. The directory is locked.
  LabRun(const Grid& grid, const GridCells& cells, const LabDirectory& directory,
         const StopSignal& stop, CostModel& costs, Options options);

  /// Runs the cells until all have a result or have failed, or until somebody asks to stop: the
  /// cells under way are then ended, and leave nothing. Fails if files cannot be written,
  /// programs cannot be started or are replaced (FAILED_PRECONDITION), settings are refused
  /// (INVALID_ARGUMENT), or a cell's files fail (DATA_LOSS).
  absl::Status Run();

 private:
  struct Running {
    const Cell* cell;
    size_t core_group;
    CostEstimate estimate;
    absl::Time begin;
    ChildProcess process;
  };

  std::vector<std::string> CommandFor(const Cell& cell, size_t core_group) const;
  absl::Status StartMore();
  absl::Status Start(const Cell& cell, size_t core_group, const CostEstimate& estimate);
  void Wait();
  absl::Status Collect();
  absl::Status End(const Running& running, const ChildProcess::End& end);
  bool Fits(const CostEstimate& estimate) const;
  CostEstimate EstimateOf(const Cell& cell) const;

  /// Returns about how long the cells that are left take.
  absl::Duration TimeLeft() const;

  const Grid& grid_;
  const LabDirectory& directory_;
  const StopSignal& stop_;
  CostModel& costs_;
  const Options options_;

  // In the order in which they are run.
  std::vector<const Cell*> waiting_;
  std::list<Running> running_;
  std::vector<size_t> free_groups_;
  size_t total_ = 0;
  size_t done_ = 0;
  const std::vector<Cell>& cells_;
  const std::vector<std::string>& axes_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_LAB_LAB_RUN_H_
