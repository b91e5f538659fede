#ifndef SLIPSTREAM_COMMON_POLICY_STALENESS_SCALING_H_
#define SLIPSTREAM_COMMON_POLICY_STALENESS_SCALING_H_

#include <algorithm>
#include <cstdint>

#include "common/run/run_spec.h"

namespace slipstream {

/// What one gradient of staleness σ is multiplied by before it is combined: α(σ)/α₀.
/// `per_gradient`: 1/σ for σ > 0, else 1 (1511.05950).
inline double GradientScale(OptimizerSpec::StalenessScaling scaling, uint64_t staleness) {
  if (scaling != OptimizerSpec::StalenessScaling::kPerGradient || staleness == 0) return 1.0;
  return 1.0 / static_cast<double>(staleness);
}

/// What the combined gradient of a round is multiplied by.
/// `mean`: 1/max(1, ⟨σ⟩), ⟨σ⟩ over the last 100 updates; for n-softsync it tends to 1/n
/// (1509.04210).
inline double RoundScale(OptimizerSpec::StalenessScaling scaling, double window_mean_staleness) {
  if (scaling != OptimizerSpec::StalenessScaling::kMean) return 1.0;
  return 1.0 / std::max(1.0, window_mean_staleness);
}

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_POLICY_STALENESS_SCALING_H_
