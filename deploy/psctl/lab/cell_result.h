#ifndef SLIPSTREAM_DEPLOY_PSCTL_LAB_CELL_RESULT_H_
#define SLIPSTREAM_DEPLOY_PSCTL_LAB_CELL_RESULT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "deploy/psctl/compare/mean_interval.h"
#include "deploy/psctl/compare/run_curves.h"
#include "deploy/psctl/lab/cells.h"
#include "deploy/psctl/lab/lab_directory.h"

namespace slipstream {

/// The result of a cell in figures, as its directory has them. Figures that the cell has not are
/// absent.
struct CellResult {
  const Cell* cell = nullptr;
  CellState state = CellState::kPending;

  /// The build of the program that carried it out.
  std::string build;

  /// Why training ended, such as "epochs" or "diverged".
  std::string ended_by;

  /// Set for a cell that diverged: the epoch in which it did, counted from 1.
  std::optional<double> diverged_in_epoch;

  /// The share of the test set that the model gets wrong. For a cell that diverged it is that of a
  /// guess, 1 − 1/classes.
  std::optional<double> error;
  std::optional<double> test_loss;

  /// How long training took: virtual seconds under engine: virtual, else seconds.
  std::optional<double> time;

  /// Examples in one second of `time`.
  std::optional<double> rate;
  std::optional<double> epochs;
  std::optional<double> updates;
  std::optional<double> pushes;
  std::optional<double> staleness_mean;
  std::optional<double> staleness_p50;
  std::optional<double> staleness_p99;
  std::optional<double> staleness_max;

  /// P(σ > 2n), the share of gradients beyond the bound of n-softsync.
  std::optional<double> beyond_bound;
  std::string weights_sha256;

  /// Gradients by staleness; the last item also counts larger ones.
  std::vector<uint64_t> staleness;
  RunCurves curves;
  std::optional<CellCost> cost;
};

/// Reads what there is of a cell: of one under way its curves. A directory without a readable
/// summary gives no figures.
CellResult ReadResult(const LabDirectory& directory, const Cell& cell, GridEngine engine);

/// Returns "error 18.09%", "diverged in epoch 3 (error 90.00%)" or "test loss 0.123"; for a cell
/// under way "error 20.12% in epoch 4", or nothing.
std::string OutcomeText(const CellResult& result);

/// Returns "pending", "running", "done", "diverged" or "failed".
std::string_view StatusName(const CellResult& result);

/// Returns n = λ/c, the number of updates per gradient of each worker.
double EffectiveN(const RunSpec& spec);

/// The cells that differ only in the seed.
struct PointResult {
  /// The first cell of them.
  const Cell* cell = nullptr;
  std::vector<const CellResult*> results;

  using Figure = std::optional<double> CellResult::*;

  /// Returns the mean of a figure over the cells that have it; absent if none has.
  std::optional<MeanInterval> Mean(Figure figure) const;

  /// Gradients by staleness, of all cells together.
  std::vector<uint64_t> Staleness() const;
  size_t done() const;
  size_t diverged() const;
};

/// Groups results, those of a point neighbours as in GridCells. `results` must outlive the points.
std::vector<PointResult> PointsOf(const std::vector<CellResult>& results);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_LAB_CELL_RESULT_H_
