#ifndef SLIPSTREAM_WORKER_TRAINING_INNER_RULE_H_
#define SLIPSTREAM_WORKER_TRAINING_INNER_RULE_H_

#include <array>
#include <span>
#include <vector>

#include "common/kernels/rules/tensor_rules.h"
#include "common/kernels/rules/update_rule.h"
#include "common/layout/tensor_layout.h"
#include "common/settings/run_spec.h"

namespace slipstream {

/// The rule by which a worker changes its own weights, with the state that the rule keeps from step
/// to step. It works in place, one piece of the model at a time.
///
/// Allocates memory for each state array of the rule, each as large as the model.
///
/// Not thread-safe: one owner.
class InnerRule {
 public:
  InnerRule(const OptimizerSpec& optimizer, const TensorLayout& layout);

  /// The parts that are updated one at a time: whole tensors, or pieces that fit the cache. They
  /// are in order and do not overlap. Frozen tensors are in none.
  const std::vector<ParameterRange>& pieces() const { return pieces_; }

  /// Begins a step: each piece is updated once before the next one.
  void BeginStep() { scalars_ = rules_.Next(scalars_); }

  /// Updates the weights of a piece by its gradient, which is `sum` · inverse_divisor; both have
  /// the piece's values only. If the rule does not measure tensors (RuleRow::measures_tensors),
  /// this may be a part of a piece.
  void Update(ParameterRange piece, std::span<float> weights, std::span<const float> sum,
              const StepSize& step, float inverse_divisor = 1);

  /// Resets the state to that before the first step.
  void ForgetState();

  // The state, for whoever saves it or puts a saved one in its place between two steps. Each array
  // is as large as the model.
  std::vector<std::span<float>> states();
  RuleScalars& scalars() { return scalars_; }

 private:
  // Constant after construction.
  const TensorRules rules_;
  const RuleRow& row_;
  std::vector<ParameterRange> pieces_;

  std::array<std::vector<float>, kStateArraysMax> states_;
  RuleScalars scalars_;

  // The results of one piece before they are written back: a rule's inputs and outputs must be
  // different arrays.
  std::vector<float> weights_out_;
  std::array<std::vector<float>, kStateArraysMax> states_out_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_TRAINING_INNER_RULE_H_
