#ifndef SLIPSTREAM_SERVER_CORE_SHARD_SHARD_QUESTIONS_H_
#define SLIPSTREAM_SERVER_CORE_SHARD_SHARD_QUESTIONS_H_

#include <cstdint>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "common/base/ids.h"
#include "common/policy/policy.h"
#include "server/core/shard/shard_rules.h"
#include "server/core/shard/shard_state.h"

namespace slipstream {

/// The members, by id, or the number of gradients from any members, that the open round lacks.
struct NamedLack {
  absl::InlinedVector<WorkerId, 4> members;
  uint32_t gradients = 0;

  /// Set if the staleness guard waits for gradients that these members have on their way.
  bool is_held_back = false;
};

/// The questions that several decisions of a shard ask: the facts that its policy is given, what
/// the policy says of them, and whether the work is done. Each answer is a function of rules and
/// state, which must outlive it.
class ShardQuestions {
 public:
  ShardQuestions(const ShardRules& rules, const ShardState& state) : rules_(rules), state_(state) {}

  ShardFacts Facts() const;
  MemberFacts FactsOf(WorkerId worker) const;

  /// Returns what the open round waits for, as the policy says.
  Lack Lacks() const { return rules_.policy().Lacks(Facts()); }

  /// Returns the same, and lists the members.
  NamedLack NamesLacked() const;

  /// Returns whether the open round waits for this member.
  bool IsAwaited(WorkerId worker) const;

  /// Returns what this slot of the worker has to wait for before its next gradient.
  PullCondition WaitsFor(WorkerId worker, uint32_t slot, bool after_push) const;

  /// Returns the members that owe the open round a gradient or an excuse.
  std::vector<WorkerId> Owing() const;

  /// Returns whether no further gradient can count.
  bool WorkIsDone() const;

  /// Returns true once no further update can come and the last one is published.
  bool IsDrained() const;

 private:
  bool Owes(const MemberRecord& member) const {
    return member.owes_from.has_value() && *member.owes_from <= state_.versions.decided();
  }

  bool IsLacked(const Lack& lack, WorkerId worker) const;

  const ShardRules& rules_;
  const ShardState& state_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CORE_SHARD_SHARD_QUESTIONS_H_
