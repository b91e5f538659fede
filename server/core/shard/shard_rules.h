#ifndef SLIPSTREAM_SERVER_CORE_SHARD_SHARD_RULES_H_
#define SLIPSTREAM_SERVER_CORE_SHARD_SHARD_RULES_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "common/base/ids.h"
#include "common/policy/learning_rate.h"
#include "common/policy/policy.h"
#include "common/policy/staleness_compensation.h"
#include "common/policy/staleness_guard.h"
#include "common/settings/policy_rows.h"
#include "common/settings/run_spec.h"
#include "server/core/run_stages.h"
#include "server/core/shard/round.h"
#include "server/core/shard/round_work.h"
#include "server/core/shard/run_position.h"
#include "server/core/shard/shard_machine_options.h"

namespace slipstream {

/// The rules by which a shard decides in the present stage of the run: its options, and what they
/// make of the stage. It has no state of its own: a shard that goes on from a state adopts the
/// stage that the state is in.
///
/// Not thread-safe: one owner.
class ShardRules {
 public:
  explicit ShardRules(const ShardMachineOptions& options);

  /// Makes what depends on the stages, on which of them it is and, if there is one, on the plan.
  void Adopt(const RunPosition& run);

  const ShardMachineOptions& options() const { return options_; }
  const StalenessGuard& guard() const { return guard_; }
  const RuleRow& rule() const { return rule_; }
  const ScalingRow& scaling() const { return scaling_; }

  const RunStage& stage() const { return stage_; }
  const PolicyTraits& traits() const { return traits_; }
  const Policy& policy() const { return *policy_; }
  const StalenessCompensation& compensation() const { return *compensation_; }

  /// Whether some policy of the run waits for members. An excuse, or its repetition, may come when
  /// the stage that it was made in has ended.
  bool takes_excuses() const { return takes_excuses_; }

  /// Whether gradients on their way are noted by slots, because rounds may wait for them.
  bool tracks_bases() const { return guard_.blocks() && !traits_.one_per_member; }
  bool uses_base_weights() const { return scaling_.uses_base_weights; }
  bool works_in_rounds() const { return traits_.work == PolicyTraits::Work::kRounds; }
  bool is_first() const { return options_.shard == ShardId{0}; }

  /// Returns the learning rate of an update to weights that this many examples are part of.
  double RateAt(uint64_t examples) const {
    return learning_rate_.has_value() ? learning_rate_->At(examples) : stage_.learning_rate;
  }

  Round NewRound() const {
    return {traits_.order, options_.sums_pushes ? PolicyTraits::Weighing::kSum : traits_.weighing};
  }

  const std::vector<RunStage>& StagesOf(const RunPosition& run) const {
    return run.StagesOr(options_.stages);
  }

  /// Returns the first mini-batch beyond a stage. REQUIRES: a plan.
  uint64_t EndOf(const RunPosition& run, uint32_t stage) const;

  /// Returns the plan of the mini-batches that this shard names in the stage, if it names any.
  std::optional<RoundWorkPlan> NewWork(const RunPosition& run) const;

 private:
  const ShardMachineOptions options_;
  const StalenessGuard guard_;
  const RuleRow& rule_;
  const ScalingRow& scaling_;

  RunStage stage_;
  PolicyTraits traits_;
  bool takes_excuses_ = false;
  std::unique_ptr<const Policy> policy_;
  std::unique_ptr<const StalenessCompensation> compensation_;
  std::optional<LearningRate> learning_rate_;  // Set once there is a plan.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CORE_SHARD_SHARD_RULES_H_
