// LAMB (You et al., arXiv 1904.00962, algorithm 2, with φ(z) = z). The step r = m̂ / (√v̂ + ε) + d
// θ, with Adam's running means m and v of the gradient alone, is scaled to a share of the norm of
// the tensor that it changes: θ ← θ − α ‖θ‖ / ‖r‖ · r. The ratio ‖θ‖ / ‖r‖ counts as 1 if either
// norm is 0. It counts as 1 beyond 10³⁰, too: r is then left over from gradients that have long
// been 0, and has no meaningful direction.

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/base/check.h"
#include "common/kernels/flushed_subnormals.h"
#include "common/kernels/rules/adam.h"
#include "common/kernels/rules/rule_makers.h"
#include "common/kernels/rules/update_stretches.h"
#include "common/kernels/squares.h"

namespace slipstream {
namespace {

using namespace update_stretches;

constexpr double kRatioMax = 1e30;

struct Factors {
  AdamFactors adam;
  float decay;
};

/// Writes r in the place of the weights.
template <bool kHasSum>
SLIPSTREAM_INLINE void StepAt(const Stretch& s, size_t i, const Factors& f) {
  const float step = AdamStepAt<kHasSum>(s, i, f.adam);
  s.weights_out[i] = step + f.decay * s.weights_in[i];
}

SLIPSTREAM_UPDATE_LOOPS(Factors)

SLIPSTREAM_CPU_DISPATCH
void SubtractScaled(const float* __restrict from, float* __restrict step, size_t count,
                    float rate) {
  for (size_t i = 0; i < count; ++i) step[i] = from[i] - rate * step[i];
}

class Lamb final : public UpdateRule {
 public:
  explicit Lamb(const OptimizerSpec& optimizer)
      : optimizer_(optimizer), decay_(static_cast<float>(optimizer.weight_decay)) {}

  RuleScalars InitialScalars() const override { return kFirstPowersOfAdam; }

  RuleScalars Next(const RuleScalars& powers) const override {
    return NextPowersOfAdam(optimizer_, powers);
  }

  void Update(const UpdateArrays& arrays, const CombinedGradient& gradient, const StepSize&,
              const RuleScalars& powers, Stores stores) const override {
    const AdamFactors adam = FactorsOfAdam(optimizer_, powers, {.rate = 1});
    Run(arrays, 2, gradient, stores, Factors{adam, decay_});
  }

  void FinishTensor(std::span<const float> weights_in, std::span<float> weights_out,
                    const StepSize& step) const override {
    PS_CHECK(weights_in.size() == weights_out.size());
    const FlushedSubnormals flushed;
    const double weights = SumOfSquares(weights_in);
    const double unscaled = SumOfSquares(weights_out);
    const double ratio = weights > 0 && unscaled > 0 ? std::sqrt(weights / unscaled) : 1;
    const double scaled = (ratio <= kRatioMax ? ratio : 1) * step.scale * step.rate;
    SubtractScaled(weights_in.data(), weights_out.data(), weights_out.size(),
                   static_cast<float>(std::min<double>(scaled, std::numeric_limits<float>::max())));
  }

 private:
  const OptimizerSpec optimizer_;
  const float decay_;
};

}  // namespace

std::unique_ptr<const UpdateRule> MakeLamb(const OptimizerSpec& optimizer) {
  return std::make_unique<Lamb>(optimizer);
}

}  // namespace slipstream
