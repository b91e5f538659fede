// Delayed Nesterov (Liu et al., arXiv 2401.09135, algorithm 3, with c = 0): momentum that stale
// gradients cannot build up N times as fast. With h = g + d θ, each update makes Δ ← Δ + h and
// θ ← θ − α h / N. Each N-th one goes on with m ← β m + Δ / N; θ ← θ − α β m; Δ ← 0. With N = 1 it
// is Nesterov's momentum.

#include "common/kernels/rules/rule_makers.h"
#include "common/kernels/rules/update_stretches.h"

namespace slipstream {
namespace {

using namespace update_stretches;

/// In an update that leaves the momentum alone, `advance`, `sum_share` and `jump` are 1, 0 and 0.
struct Factors {
  float rate;  // α / N
  float decay;
  float advance;    // β
  float sum_share;  // 1 / N
  float sum_kept;   // 0, or 1 if the momentum stays.
  float jump;       // α β
};

template <bool kHasSum>
SLIPSTREAM_INLINE void StepAt(const Stretch& s, size_t i, const Factors& f) {
  const float g = GradientAt<kHasSum>(s, i, f.decay);
  const float sum = s.states[1].in[i] + g;
  const float momentum = f.advance * s.states[0].in[i] + f.sum_share * sum;
  s.states[0].out[i] = momentum;
  s.states[1].out[i] = f.sum_kept * sum;
  s.weights_out[i] = s.weights_in[i] - f.rate * g - f.jump * momentum;
}

SLIPSTREAM_UPDATE_LOOPS(Factors)

class DelayedNesterov final : public UpdateRule {
 public:
  explicit DelayedNesterov(const OptimizerSpec& optimizer)
      : momentum_(static_cast<float>(optimizer.parameters["momentum"])),
        period_(optimizer.parameters["momentum_every"]),
        decay_(static_cast<float>(optimizer.weight_decay)) {}

  /// The first scalar counts updates since the momentum advanced, from 1 to the period.
  RuleScalars Next(const RuleScalars& scalars) const override {
    return {scalars[0] >= period_ ? 1 : scalars[0] + 1, 0};
  }

  void Update(const UpdateArrays& arrays, const CombinedGradient& gradient, const StepSize& step,
              const RuleScalars& scalars, Stores stores) const override {
    const auto share = static_cast<float>(1 / period_);
    Factors factors = {.rate = step.rate * share,
                       .decay = decay_,
                       .advance = 1,
                       .sum_share = 0,
                       .sum_kept = 1,
                       .jump = 0};
    if (scalars[0] >= period_) {
      factors.advance = momentum_;
      factors.sum_share = share;
      factors.sum_kept = 0;
      factors.jump = step.rate * momentum_;
    }
    Run(arrays, 2, gradient, stores, factors);
  }

 private:
  const float momentum_;
  const double period_;
  const float decay_;
};

}  // namespace

std::unique_ptr<const UpdateRule> MakeDelayedNesterov(const OptimizerSpec& optimizer) {
  return std::make_unique<DelayedNesterov>(optimizer);
}

}  // namespace slipstream
