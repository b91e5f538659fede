#ifndef SLIPSTREAM_DEPLOY_PSCTL_LAB_CELL_PROGRAM_H_
#define SLIPSTREAM_DEPLOY_PSCTL_LAB_CELL_PROGRAM_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "deploy/psctl/lab/grid_file.h"

namespace slipstream {

/// The program that carries out cells.
struct CellProgram {
  /// ps_lab, or psctl itself, which starts ps_server and ps_worker.
  std::string path;

  /// 8 hexadecimal digits that differ where results may: a hash of ps_lab, or of ps_server and
  /// ps_worker.
  std::string build;

  /// The variables that make psctl start the same ps_server and ps_worker, as NAME=value.
  std::vector<std::string> environment = {};

  /// All files that cells are carried out with, as they were when they were found.
  struct File {
    std::string path;
    uint64_t inode = 0;
    uint64_t size = 0;
    int64_t modified_ns = 0;
  };
  std::vector<File> files = {};
};

/// Finds the program of an engine, as FindLab and FindPrograms do. Fails with DATA_LOSS if it
/// cannot be read.
absl::StatusOr<CellProgram> FindCellProgram(GridEngine engine, const std::string& bin_dir);

/// Fails with FAILED_PRECONDITION if one of the files is another one by now: its results would be
/// taken for those of the build that was found.
absl::Status CheckUnchanged(const CellProgram& program);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_LAB_CELL_PROGRAM_H_
