#ifndef SLIPSTREAM_DEPLOY_PSCTL_LAB_CELL_PROGRAM_H_
#define SLIPSTREAM_DEPLOY_PSCTL_LAB_CELL_PROGRAM_H_

#include <string>

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
};

/// Finds the program of an engine, as FindLab and FindPrograms do.
absl::StatusOr<CellProgram> FindCellProgram(GridEngine engine, const std::string& bin_dir);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_LAB_CELL_PROGRAM_H_
