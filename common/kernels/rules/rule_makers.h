#ifndef SLIPSTREAM_COMMON_KERNELS_RULES_RULE_MAKERS_H_
#define SLIPSTREAM_COMMON_KERNELS_RULES_RULE_MAKERS_H_

#include <memory>

#include "common/kernels/rules/update_rule.h"
#include "common/run/run_spec.h"

namespace slipstream {

/// What makes the rule of each kind; the formulas are in the files of these names.
std::unique_ptr<const UpdateRule> MakeSgd(const OptimizerSpec& optimizer);
std::unique_ptr<const UpdateRule> MakeMomentum(const OptimizerSpec& optimizer);
std::unique_ptr<const UpdateRule> MakeNesterov(const OptimizerSpec& optimizer);

/// Adam and AdamW.
std::unique_ptr<const UpdateRule> MakeAdam(const OptimizerSpec& optimizer);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_KERNELS_RULES_RULE_MAKERS_H_
