#ifndef SLIPSTREAM_COMMON_RUN_POLICY_ROWS_H_
#define SLIPSTREAM_COMMON_RUN_POLICY_ROWS_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

#include "common/run/run_spec.h"

namespace slipstream {

/// The properties of a consistency policy on which others depend than the shard that follows it;
/// how that decides is in common/policy.
/// Nobody asks for a policy's name to find out what it is like.
struct PolicyTraits {
  /// A round takes one gradient of each member that owes it one, of the version that the round
  /// starts from, or an excuse. So none is ever stale.
  bool one_per_member = false;

  /// Workers step with all shards at one version.
  bool in_step = false;

  /// Somebody may wait for a member: one that has nothing to give has to say so.
  bool waits_for_members = false;

  /// The order in which a round's gradients are summed: that of their completion, or of the
  /// members' ids, so that the bits do not depend on who was faster.
  enum class Order : uint8_t { kArrival, kRank };
  Order order = Order::kArrival;

  /// Gradients of a round count all alike, or by their examples.
  enum class Weighing : uint8_t { kEqual, kExamples };
  Weighing weighing = Weighing::kEqual;

  /// Who hands out mini-batches: the coordinator, in units, or the first shard, with the weights of
  /// each round.
  enum class Work : uint8_t { kUnits, kRounds };
  Work work = Work::kUnits;
};

/// A policy as it is known by its name.
struct PolicyRow {
  ConsistencySpec::Policy policy;
  std::string_view name;
  PolicyTraits traits;

  /// c: the gradients one update combines, for so many members.
  uint32_t (*round_size)(const ConsistencySpec& spec, uint32_t members);
};

inline constexpr std::array<PolicyRow, 3> kPolicyRows = {{
    {.policy = ConsistencySpec::Policy::kHardsync,
     .name = "hardsync",
     .traits = {.one_per_member = true,
                .in_step = true,
                .waits_for_members = true,
                .order = PolicyTraits::Order::kRank,
                .weighing = PolicyTraits::Weighing::kExamples,
                .work = PolicyTraits::Work::kRounds},
     .round_size = [](const ConsistencySpec&, uint32_t members) { return std::max(1u, members); }},
    // n-softsync (Gupta, Zhang, Wang: Model accuracy and runtime tradeoff in distributed deep
    // learning, ICDM 2016, arXiv 1509.04210): c = ⌊λ/n⌋.
    {.policy = ConsistencySpec::Policy::kSoftsync,
     .name = "softsync",
     .traits = {},
     .round_size = [](const ConsistencySpec& spec,
                      uint32_t members) { return std::max(1u, members / spec.n); }},
    {.policy = ConsistencySpec::Policy::kAsync,
     .name = "async",
     .traits = {},
     .round_size = [](const ConsistencySpec&, uint32_t) { return 1u; }},
}};

constexpr const PolicyRow& RowOf(ConsistencySpec::Policy policy) {
  return *std::ranges::find(kPolicyRows, policy, &PolicyRow::policy);
}

constexpr std::string_view PolicyName(ConsistencySpec::Policy policy) { return RowOf(policy).name; }

/// The traits of the policy with the staleness guard around it.
constexpr PolicyTraits TraitsOf(const ConsistencySpec& spec) {
  PolicyTraits traits = RowOf(spec.policy).traits;
  traits.waits_for_members |= spec.max_staleness.action == StalenessGuardSpec::Action::kBlock;
  return traits;
}

constexpr uint32_t RoundSize(const ConsistencySpec& spec, uint32_t members) {
  return RowOf(spec.policy).round_size(spec, members);
}

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_RUN_POLICY_ROWS_H_
