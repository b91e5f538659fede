#ifndef SLIPSTREAM_COMMON_POLICY_STALENESS_COMPENSATION_H_
#define SLIPSTREAM_COMMON_POLICY_STALENESS_COMPENSATION_H_

#include <cstdint>
#include <memory>
#include <span>

#include "common/kernels/fold.h"
#include "common/kernels/segments.h"
#include "common/settings/run_spec.h"

namespace slipstream {

/// Weights of one range, as they were when a gradient was computed and as they are now.
struct MovedWeights {
  std::span<const float> base;
  std::span<const float> now;
};

/// How a run compensates the staleness of its gradients: by smaller steps, or by how far the
/// weights have moved since.
///
/// Stateless: equal facts give equal factors. What a compensation remembers of earlier gradients
/// and updates (ScalingRow::keeps_history) its caller keeps in an array, `history`, of 0 at first;
/// it is empty for the others. Thread-safe: const after construction.
class StalenessCompensation {
 public:
  virtual ~StalenessCompensation() = default;

  /// Returns α(σ)/α₀, by which one gradient of staleness σ is multiplied before it is combined.
  virtual double GradientFactor(uint64_t /*staleness*/) const { return 1; }

  /// Returns the factor of the combined gradient of a round; `mean_staleness` is ⟨σ⟩ over the last
  /// 100 updates.
  virtual double RoundFactor(double /*mean_staleness*/) const { return 1; }

  /// Folds a compensated gradient into a round's sum, as FoldGradient (common/kernels/fold.h) folds
  /// an uncompensated one. REQUIRES: the row uses base weights; all spans are equally long.
  virtual void Fold(std::span<float> sum, const Segments& gradient, const MovedWeights& weights,
                    std::span<float> history, const FoldTerms& terms) const;

  /// Notes that an update has led from `before` to `after`; `updates` counts them, this one
  /// included.
  virtual void OnUpdate(std::span<const float> /*before*/, std::span<const float> /*after*/,
                        uint64_t /*updates*/, std::span<float> /*history*/) const {}
};

/// Makes the compensation that a run asks for.
std::unique_ptr<const StalenessCompensation> MakeCompensation(const OptimizerSpec& optimizer);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_POLICY_STALENESS_COMPENSATION_H_
