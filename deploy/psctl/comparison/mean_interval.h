#ifndef SLIPSTREAM_DEPLOY_PSCTL_COMPARISON_MEAN_INTERVAL_H_
#define SLIPSTREAM_DEPLOY_PSCTL_COMPARISON_MEAN_INTERVAL_H_

#include <cstddef>
#include <optional>
#include <span>

namespace slipstream {

/// The mean of a few measurements, and how well they tell that of all that could be made.
struct MeanInterval {
  double mean = 0;

  /// The mean of all lies within `mean` ± this with a probability of 95 %, if measurements follow
  /// a normal distribution. Absent for one measurement, which says nothing of their spread.
  std::optional<double> half_width;
  size_t count = 0;
};

/// REQUIRES: there is at least one value.
MeanInterval MeanOf(std::span<const double> values);

/// The value that a variable of Student's t distribution with so many degrees of freedom exceeds in
/// either direction with a probability of 5 %; to 1e-4. REQUIRES: degrees > 0.
double StudentQuantile95(size_t degrees);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_COMPARISON_MEAN_INTERVAL_H_
