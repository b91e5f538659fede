#ifndef SLIPSTREAM_COMMON_KERNELS_RULES_RULE_MAKERS_H_
#define SLIPSTREAM_COMMON_KERNELS_RULES_RULE_MAKERS_H_

#include <memory>

#include "common/kernels/rules/update_rule.h"
#include "common/settings/run_spec.h"

namespace slipstream {

/// Each of these makes the rule of one kind; its formula is in the file of that name.
std::unique_ptr<const UpdateRule> MakeSgd(const OptimizerSpec& optimizer);
std::unique_ptr<const UpdateRule> MakeMomentum(const OptimizerSpec& optimizer);
std::unique_ptr<const UpdateRule> MakeNesterov(const OptimizerSpec& optimizer);
std::unique_ptr<const UpdateRule> MakeLamb(const OptimizerSpec& optimizer);
std::unique_ptr<const UpdateRule> MakeAdagrad(const OptimizerSpec& optimizer);
std::unique_ptr<const UpdateRule> MakeRmsProp(const OptimizerSpec& optimizer);
std::unique_ptr<const UpdateRule> MakeDelayedNesterov(const OptimizerSpec& optimizer);
std::unique_ptr<const UpdateRule> MakeAssign(const OptimizerSpec& optimizer);

/// Makes the rule of both Adam and AdamW.
std::unique_ptr<const UpdateRule> MakeAdam(const OptimizerSpec& optimizer);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_KERNELS_RULES_RULE_MAKERS_H_
