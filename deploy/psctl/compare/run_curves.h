#ifndef SLIPSTREAM_DEPLOY_PSCTL_COMPARE_RUN_CURVES_H_
#define SLIPSTREAM_DEPLOY_PSCTL_COMPARE_RUN_CURVES_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace slipstream {

struct CurvePoint {
  double x = 0;
  double y = 0;

  friend bool operator==(const CurvePoint&, const CurvePoint&) = default;
};

/// The points of a curve, from left to right.
using Curve = std::vector<CurvePoint>;

/// A measurement of the accuracy. `epoch`: the epochs that were complete when it was ordered, which
/// says which measurements of several runs are the same; `epochs_measured`: what had gone into the
/// weights.
struct Measurement {
  double epoch = 0;
  double epochs_measured = 0;
  double time = 0;
  double accuracy = 0;
};

/// The course of a run, from its metrics.jsonl. Times are seconds since training began; accuracies
/// are shares of the test set in [0, 1].
struct RunCurves {
  // These have a point for each evaluation. Its time is the begin of the evaluation.
  Curve accuracy_by_time;
  Curve accuracy_by_epoch;
  Curve loss_by_time;
  Curve loss_by_epoch;
  std::vector<Measurement> measurements = {};  // By epoch.

  /// Where a run that diverged has its end in the curves of accuracy: their last points.
  bool ends_diverged = false;

  /// The rate, in examples per second, in parts of the training time. Each point is at the middle
  /// of a part.
  Curve rate_by_time;
};

/// Computes the curves from `metrics`, the text of the file at `path`. Fails with DATA_LOSS, naming
/// path and line, if a line is no JSON object with the time `t`.
absl::StatusOr<RunCurves> ParseCurves(std::string_view metrics, const std::string& path);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_COMPARE_RUN_CURVES_H_
