// The registry of update rules.

#include <algorithm>

#include "common/base/check.h"
#include "common/kernels/rules/rule_makers.h"
#include "common/kernels/rules/update_rule.h"

namespace slipstream {
namespace {

struct Maker {
  RuleKind kind;
  std::unique_ptr<const UpdateRule> (*make)(const OptimizerSpec& optimizer);
};

constexpr Maker kMakers[] = {
    {RuleKind::kSgd, MakeSgd},
    {RuleKind::kMomentum, MakeMomentum},
    {RuleKind::kNesterov, MakeNesterov},
    {RuleKind::kAdam, MakeAdam},
    {RuleKind::kAdamW, MakeAdam},
    {RuleKind::kLamb, MakeLamb},
    {RuleKind::kAdagrad, MakeAdagrad},
    {RuleKind::kRmsProp, MakeRmsProp},
    {RuleKind::kDelayedNesterov, MakeDelayedNesterov},
    {RuleKind::kAssign, MakeAssign},
};

static_assert(std::ranges::all_of(kRuleRows, [](const RuleRow& row) {
  return std::ranges::count(kMakers, row.kind, &Maker::kind) == 1;
}));

}  // namespace

void UpdateRule::FinishTensor(std::span<const float>, std::span<float>, const StepSize&) const {
  PS_CHECK(false);  // The rule's row says that it does not measure tensors.
}

std::unique_ptr<const UpdateRule> MakeUpdateRule(const OptimizerSpec& optimizer) {
  return std::ranges::find(kMakers, optimizer.kind, &Maker::kind)->make(optimizer);
}

}  // namespace slipstream
