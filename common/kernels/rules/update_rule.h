#ifndef SLIPSTREAM_COMMON_KERNELS_RULES_UPDATE_RULE_H_
#define SLIPSTREAM_COMMON_KERNELS_RULES_UPDATE_RULE_H_

#include <array>
#include <cstddef>
#include <memory>
#include <span>

#include "common/kernels/fold.h"
#include "common/kernels/streamed_stores.h"
#include "common/settings/run_spec.h"

namespace slipstream {

/// The most state arrays that a rule may have.
inline constexpr size_t kStateArraysMax = 2;

/// Numbers that a rule keeps with each version, beside its arrays, as Adam keeps β₁ᵗ and β₂ᵗ.
using RuleScalars = std::array<double, 2>;

/// The arrays of one update, or the same range of each. All have one size, and inputs do not
/// overlap outputs; but a rule that adds (RuleRow::adds) may write its weights where it reads them.
struct UpdateArrays {
  struct State {
    std::span<const float> in;
    std::span<float> out;
  };

  std::span<const float> weights_in;
  std::span<float> weights_out;

  /// The first RuleRow::state_arrays of these are in use; the others are empty.
  std::array<State, kStateArraysMax> states = {};
};

/// The size of one update's step.
struct StepSize {
  /// The learning rate, after its schedule.
  float rate = 0;

  /// The factor by which a rule that normalises (RuleRow::normalises) multiplies its step, but not
  /// its decay; 1 for the others.
  float scale = 1;
};

/// An update rule of the optimizer: it makes the next version of weights and state from one
/// combined gradient. Each element that Update writes depends only on the elements at its position,
/// so it may be called range by range; the bits are the same on every instruction set.
///
/// A rule that measures tensors (RuleRow::measures_tensors) makes a version in two passes: Update
/// writes the states and, in the place of the weights, the step before it is scaled. FinishTensor
/// makes weights of that step, tensor by tensor.
///
/// Thread-safe: const after construction.
class UpdateRule {
 public:
  virtual ~UpdateRule() = default;

  /// Returns the numbers of version 0.
  virtual RuleScalars InitialScalars() const { return {}; }

  /// Returns the numbers of the version after one that has `scalars`.
  virtual RuleScalars Next(const RuleScalars& scalars) const { return scalars; }

  /// Writes weights and states of the version that has `scalars`.
  /// REQUIRES: the gradient has a sum or a last part of the arrays' size.
  virtual void Update(const UpdateArrays& arrays, const CombinedGradient& gradient,
                      const StepSize& step, const RuleScalars& scalars, Stores stores) const = 0;

  /// Writes the weights of one whole tensor over the step that Update has left in `weights_out`,
  /// which is as large as `weights_in`. REQUIRES: the rule measures tensors.
  virtual void FinishTensor(std::span<const float> weights_in, std::span<float> weights_out,
                            const StepSize& step) const;
};

/// Makes the rule that a run asks for.
std::unique_ptr<const UpdateRule> MakeUpdateRule(const OptimizerSpec& optimizer);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_KERNELS_RULES_UPDATE_RULE_H_
