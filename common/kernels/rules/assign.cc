// Assignment: θ ← v, where v is what was pushed.

#include "common/kernels/rules/rule_makers.h"
#include "common/kernels/rules/update_stretches.h"

namespace slipstream {
namespace {

using namespace update_stretches;

struct Factors {};

/// A value that came alone is copied, bit by bit: no multiplication by 1 may make a subnormal 0.
template <bool kHasSum>
SLIPSTREAM_INLINE void StepAt(const Stretch& s, size_t i, const Factors&) {
  s.weights_out[i] = kHasSum ? GradientAt<true>(s, i, 0) : float{s.gradient[i]};
}

SLIPSTREAM_UPDATE_LOOPS(Factors)

class Assign final : public UpdateRule {
 public:
  void Update(const UpdateArrays& arrays, const CombinedGradient& gradient, const StepSize&,
              const RuleScalars&, Stores stores) const override {
    Run(arrays, 0, gradient, stores, {});
  }
};

}  // namespace

std::unique_ptr<const UpdateRule> MakeAssign(const OptimizerSpec&) {
  return std::make_unique<Assign>();
}

}  // namespace slipstream
