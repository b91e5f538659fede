#ifndef SLIPSTREAM_COMMON_KERNELS_RULES_TENSOR_RULES_H_
#define SLIPSTREAM_COMMON_KERNELS_RULES_TENSOR_RULES_H_

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "common/kernels/fold.h"
#include "common/kernels/rules/update_rule.h"
#include "common/kernels/streamed_stores.h"
#include "common/layout/tensor_layout.h"
#include "common/settings/run_spec.h"

namespace slipstream {

/// The update rule of a run over a range of the flat parameter vector, in which tensors may have
/// options of their own (OptimizerSpec::per_tensor). Whoever makes updates goes through it: it
/// walks the spans that have equal options, and gives each to a rule with its decay at its rate. As
/// rules work element by element, the bits are the same wherever updates are cut; and without
/// options there is a single span, which is handed on as it is.
///
/// A frozen span has no rule: its weights are copied. If it is frozen for one update alone, so is
/// its state; otherwise nobody reads or writes that.
///
/// Thread-safe: const after construction.
class TensorRules {
 public:
  struct Span {
    ParameterRange range;
    std::shared_ptr<const UpdateRule> rule;  // Null if the span is frozen.
    double learning_rate_factor = 1;
    bool keeps_state = false;  // Set if it is frozen for one update alone.

    bool is_frozen() const { return rule == nullptr; }
  };

  /// Positions in `range` count from its begin.
  TensorRules(const OptimizerSpec& optimizer, const TensorLayout& layout,
              const ParameterRange& range);

  /// Returns the rules of one update for which these ranges are frozen, too. `ranges`: in order of
  /// their positions, without overlap.
  TensorRules Without(std::span<const ParameterRange> ranges) const;

  /// The spans, one after another.
  const std::vector<Span>& spans() const { return spans_; }

  /// Returns the span with the value at `position`. REQUIRES: there is such a value.
  const Span& SpanAt(size_t position) const { return *Find(position); }

  /// See UpdateRule: all spans have the same scalars.
  RuleScalars InitialScalars() const { return rule_->InitialScalars(); }
  RuleScalars Next(const RuleScalars& scalars) const { return rule_->Next(scalars); }

  /// Does UpdateRule::Update for the arrays' values, the first of which is at position `begin`.
  void Update(size_t begin, const UpdateArrays& arrays, const CombinedGradient& gradient,
              const StepSize& step, const RuleScalars& scalars, Stores stores) const;

  /// Does UpdateRule::FinishTensor for the tensor that begins at position `begin`.
  void FinishTensor(size_t begin, std::span<const float> weights_in, std::span<float> weights_out,
                    const StepSize& step) const;

 private:
  std::vector<Span>::const_iterator Find(size_t position) const;

  std::shared_ptr<const UpdateRule> rule_;  // The rule of tensors without options.
  std::vector<Span> spans_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_KERNELS_RULES_TENSOR_RULES_H_
