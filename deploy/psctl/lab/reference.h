#ifndef SLIPSTREAM_DEPLOY_PSCTL_LAB_REFERENCE_H_
#define SLIPSTREAM_DEPLOY_PSCTL_LAB_REFERENCE_H_

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "common/config/diagnostic.h"
#include "deploy/psctl/lab/cell_result.h"
#include "deploy/psctl/lab/grid_file.h"

namespace slipstream {

/// A line of a reference: published values, and the keys of the grid that say what they are for.
struct ReferenceRow {
  int line = 0;

  /// Whole paths of keys and their values, in the order of the columns.
  std::vector<std::pair<std::string, std::string>> keys;
  double error_percent = 0;

  /// The other columns, in their order.
  std::vector<std::pair<std::string, std::string>> others;
};

/// Reads a reference from the text of its CSV file: a line of names, then one for each row. Columns
/// that stand for keys are those of `reference.match`; if that is empty, those with the name of a
/// key, and sigma (consistency.n), mu (training.batch_size) and lambda (cluster.workers).
std::variant<std::vector<ReferenceRow>, std::vector<Diagnostic>> ParseReference(
    std::string_view text, const GridReference& reference);

/// Reads the reference's file.
std::variant<std::vector<ReferenceRow>, std::vector<Diagnostic>> LoadReference(
    const GridReference& reference);

/// A published value beside ours.
struct ReferenceMatch {
  ReferenceRow row;

  /// Null if the grid has no such cell.
  const PointResult* point = nullptr;

  /// Our error in percent, over all seeds; absent if there is no result yet.
  std::optional<MeanInterval> ours;

  /// Ours minus the published one, in percentage points.
  std::optional<double> difference() const;
};

/// The comparison of all rows.
struct ReferenceView {
  std::vector<ReferenceMatch> matches;
  std::optional<double> tolerance;

  /// Over the rows with a result: the mean of the differences and of their absolute values, in
  /// percentage points.
  std::optional<double> mean_difference;
  std::optional<double> mean_distance;

  /// Spearman's correlation of ranks, in [−1, 1]: whether the order of the errors is the published
  /// one, whatever their size. Absent below three rows with a result.
  std::optional<double> rank_correlation;

  /// Returns the rows that are further away than the tolerance, or have no result. 0 without a
  /// tolerance.
  size_t not_reproduced() const;
};

ReferenceView CompareWith(const std::vector<ReferenceRow>& rows, const GridReference& reference,
                          const std::vector<PointResult>& points);

/// Returns "20 of 22 within 3 percentage points: does not reproduce", and the like; or what is
/// known without a tolerance.
std::string VerdictText(const ReferenceView& view);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_LAB_REFERENCE_H_
