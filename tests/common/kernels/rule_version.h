#ifndef SLIPSTREAM_TESTS_COMMON_KERNELS_RULE_VERSION_H_
#define SLIPSTREAM_TESTS_COMMON_KERNELS_RULE_VERSION_H_

#include <cstddef>
#include <vector>

#include "common/kernels/fold.h"
#include "common/kernels/rules/update_rule.h"
#include "common/kernels/streamed_stores.h"
#include "common/settings/run_spec.h"

namespace slipstream {

/// Returns the optimizer of a kind with the defaults of its parameters.
inline OptimizerSpec RuleSpec(RuleKind kind, double decay = 0) {
  OptimizerSpec spec;
  spec.kind = kind;
  spec.weight_decay = decay;
  return spec;
}

/// The weights and states of one version, from which a rule makes the next version.
struct RuleVersion {
  std::vector<float> weights;
  std::vector<float> states[kStateArraysMax];
};

/// Returns the next version, after one update at `rate`.
inline RuleVersion Updated(const OptimizerSpec& spec, const RuleVersion& from,
                           const CombinedGradient& gradient, float rate,
                           const RuleScalars& scalars = {}, Stores stores = Stores::kCached) {
  RuleVersion to = from;
  UpdateArrays arrays = {.weights_in = from.weights, .weights_out = to.weights};
  for (size_t i = 0; i < RowOf(spec.kind).state_arrays; ++i) {
    arrays.states[i] = {from.states[i], to.states[i]};
  }
  MakeUpdateRule(spec)->Update(arrays, gradient, {.rate = rate}, scalars, stores);
  return to;
}

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_COMMON_KERNELS_RULE_VERSION_H_
