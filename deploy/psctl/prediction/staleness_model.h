#ifndef SLIPSTREAM_DEPLOY_PSCTL_PREDICTION_STALENESS_MODEL_H_
#define SLIPSTREAM_DEPLOY_PSCTL_PREDICTION_STALENESS_MODEL_H_

#include <cstdint>

namespace slipstream {

// Models of chance: pure functions. Times of computing are log-normal with a mean of 1; their
// `spread` is the standard deviation.

/// Returns the mean staleness where each of λ workers always has d gradients under way and an
/// update takes c of them: (dλ − 1)/c, whatever the speeds.
double MeanStaleness(double under_way, double per_update);

/// Returns P(σ > bound) of a worker while whose gradient is computed `others` gradients of others
/// are expected: λ − 1 if workers are alike, and R/r − 1 if this one pushes at a rate of r and all
/// at R. How many there are follows from how long this gradient takes, and from how the pushes of
/// the others fall, whose variance is spread² for each. The gradient's place among the c of a round
/// is even.
double StalenessBeyond(double others, uint32_t per_update, double spread, double bound);

/// Returns E[X_(K:λ)], how long the fastest K of λ workers take.
double FastestOf(uint32_t fastest, uint32_t workers, double spread);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_PREDICTION_STALENESS_MODEL_H_
