#ifndef SLIPSTREAM_TESTS_DEPLOY_PSCTL_LAB_GRID_SUPPORT_H_
#define SLIPSTREAM_TESTS_DEPLOY_PSCTL_LAB_GRID_SUPPORT_H_

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/config/run_config.h"
#include "deploy/psctl/lab/cells.h"
#include "deploy/psctl/lab/grid_file.h"

namespace slipstream {

/// A grid's settings for tests: 30 workers.
inline constexpr char kRun[] =
    "run:\n"
    "  model: {preset: mlp}\n"
    "  data: {format: synthetic}\n"
    "  training: {epochs: 140}\n"
    "  optimizer: {schedule: {kind: step, at_epochs: [120, 130], factor: 0.1}}\n"
    "  cluster: {servers: [\"localhost:7070\"], workers: 30}\n";

/// A grid that has been read, with its cells. The cells do not refer to the grid.
struct Expanded {
  Grid grid;
  GridCells cells;

  /// Returns the labels of all cells.
  std::vector<std::string> Labels() const {
    std::vector<std::string> labels;
    for (const Cell& cell : cells.cells) labels.push_back(CellLabel(cells.axes, cell.values));
    return labels;
  }
};

/// Reads a grid from kRun and `more`.
inline Expanded Expand(const std::string& more) {
  Expanded expanded;
  auto grid = ParseGrid(kRun + more, "grid.yaml");
  if (const auto* errors = std::get_if<std::vector<Diagnostic>>(&grid)) {
    ADD_FAILURE() << ToString(*errors);
    return expanded;
  }
  expanded.grid = std::get<Grid>(std::move(grid));
  auto cells = ExpandGrid(expanded.grid);
  if (const auto* errors = std::get_if<std::vector<Diagnostic>>(&cells)) {
    ADD_FAILURE() << ToString(*errors);
    return expanded;
  }
  expanded.cells = std::get<GridCells>(std::move(cells));
  return expanded;
}

/// Returns the errors in a grid of kRun and `more`, one a line.
inline std::string ErrorsIn(const std::string& more) {
  auto grid = ParseGrid(kRun + more, "grid.yaml");
  if (const auto* errors = std::get_if<std::vector<Diagnostic>>(&grid)) return ToString(*errors);
  auto cells = ExpandGrid(std::get<Grid>(grid));
  if (const auto* errors = std::get_if<std::vector<Diagnostic>>(&cells)) return ToString(*errors);
  return "";
}

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_DEPLOY_PSCTL_LAB_GRID_SUPPORT_H_
