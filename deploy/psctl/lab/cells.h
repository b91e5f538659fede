#ifndef SLIPSTREAM_DEPLOY_PSCTL_LAB_CELLS_H_
#define SLIPSTREAM_DEPLOY_PSCTL_LAB_CELLS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/config/diagnostic.h"
#include "common/settings/run_spec.h"
#include "deploy/psctl/lab/grid_file.h"

namespace slipstream {

/// The value that a cell has on an axis of its grid.
struct CellValue {
  std::string key;    // The whole path.
  std::string value;  // As the cell's run.yaml has it; empty if the key has no part in the cell.

  /// The value as the grid has it, so that a curve over workers can follow `n: "=workers"`.
  std::string written;

  friend bool operator==(const CellValue&, const CellValue&) = default;
};

/// The values of a cell on all axes, in the grid's order.
using CellValues = std::vector<CellValue>;

/// One run of a grid, with everything that decides its result.
struct Cell {
  /// 16 hexadecimal digits that differ where the result of a program may: a hash of the engine, the
  /// settings but for the run's name, and the world.
  std::string id;
  CellValues values;

  /// The values of other cells of the grid, left out because they mean the same as this one.
  std::vector<CellValues> same;
  RunSpec settings;

  /// The text of world.yaml.
  std::string world;

  /// The place of the cell among those of all seeds: cells that differ only in the seed have the
  /// same one. `repetition` counts them from 0.
  size_t point = 0;
  size_t repetition = 0;

  uint64_t seed() const { return settings.seed; }
};

struct GridCells {
  /// The cells of a point are neighbours.
  std::vector<Cell> cells;

  /// The short names of the axes, in the grid's order.
  std::vector<std::string> axes;
  size_t left_out = 0;  // By `where`.
  size_t merged = 0;    // Cells that mean the same as others.
};

inline constexpr size_t kCellsMax = 100'000;

/// Makes the cells of a grid, or returns all errors; those in a cell's values are reported where
/// the grid has them. Environment variables have no say.
std::variant<GridCells, std::vector<Diagnostic>> ExpandGrid(const Grid& grid);

/// Returns "1 cell" or "6 cells" if `one` is "cell".
std::string CountText(size_t count, std::string_view one);

/// Returns "n=1, batch_size=4, workers=30"; the names are those of GridCells. Values that have no
/// part in the cell are left out.
std::string CellLabel(const std::vector<std::string>& axes, const CellValues& values);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_LAB_CELLS_H_
