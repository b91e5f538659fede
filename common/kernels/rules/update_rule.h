#ifndef SLIPSTREAM_COMMON_KERNELS_RULES_UPDATE_RULE_H_
#define SLIPSTREAM_COMMON_KERNELS_RULES_UPDATE_RULE_H_

#include <array>
#include <cstddef>
#include <memory>
#include <span>

#include "common/kernels/fold.h"
#include "common/kernels/streamed_stores.h"
#include "common/run/run_spec.h"

namespace slipstream {

/// The most state arrays that a rule may have.
inline constexpr size_t kStateArraysMax = 2;

/// Numbers of a rule that belong to a version, beside its arrays: Adam's β₁ᵗ and β₂ᵗ, say.
using RuleScalars = std::array<double, 2>;

/// The arrays of one update, or one range of all of them. Equal sizes; in and out do not overlap.
struct UpdateArrays {
  struct State {
    std::span<const float> in;
    std::span<float> out;
  };

  std::span<const float> weights_in;
  std::span<float> weights_out;

  /// RuleRow::state_arrays of them; empty ones beyond.
  std::array<State, kStateArraysMax> states = {};
};

/// How far one update goes.
struct StepSize {
  /// The learning rate, after its schedule.
  float rate = 0;

  /// Of a rule that normalises: what its step is multiplied by, but not its decay.
  float scale = 1;
};

/// An update rule of the optimizer: it makes the next version of weights and state from one
/// combined gradient. Each element of the results depends only on the elements at its position, so
/// an update may be made range by range; the bits are the same on every instruction set.
///
/// Thread-safe: const after construction.
class UpdateRule {
 public:
  virtual ~UpdateRule() = default;

  /// The numbers of version 0.
  virtual RuleScalars InitialScalars() const { return {}; }

  /// Those of the version after one that has `scalars`.
  virtual RuleScalars Next(const RuleScalars& scalars) const { return scalars; }

  /// Writes weights and states of the version that has `scalars`.
  /// REQUIRES: the gradient has a sum or a last part of the arrays' size.
  virtual void Update(const UpdateArrays& arrays, const CombinedGradient& gradient,
                      const StepSize& step, const RuleScalars& scalars, Stores stores) const = 0;
};

/// The rule that a run asks for.
std::unique_ptr<const UpdateRule> MakeUpdateRule(const OptimizerSpec& optimizer);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_KERNELS_RULES_UPDATE_RULE_H_
