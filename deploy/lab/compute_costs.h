#ifndef SLIPSTREAM_DEPLOY_LAB_COMPUTE_COSTS_H_
#define SLIPSTREAM_DEPLOY_LAB_COMPUTE_COSTS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/settings/run_spec.h"

namespace slipstream {

/// The time that the gradient of a mini-batch takes.
struct ComputeCosts {
  struct Point {
    uint32_t batch_size = 0;
    double seconds = 0;
  };

  /// A mini-batch of μ examples takes fixed + per_example · μ seconds.
  double fixed = 0;
  double per_example = 0;

  /// Half of what lies between the 16th and the 84th percentile, by the median: the standard
  /// deviation by the mean, if times are normal.
  double spread = 0;

  /// The share of a processor that this thread had meanwhile: less than 1 on a busy machine.
  double processor_share = 1;

  /// The medians.
  std::vector<Point> points;
};

/// Fits fixed and per_example to points by least squares, with neither below 0. REQUIRES: there is
/// a point.
ComputeCosts FitComputeCosts(std::vector<ComputeCosts::Point> points);

/// Measures steps of the run's net on the device that it asks for, with mini-batches of its size, a
/// half and a quarter of it, in random examples. Fails as OpenDevice and Device::Prepare do.
absl::StatusOr<ComputeCosts> MeasureCompute(const RunSpec& run, absl::Duration budget);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_LAB_COMPUTE_COSTS_H_
