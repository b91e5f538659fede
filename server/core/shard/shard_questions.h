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

/// The questions that several decisions of a shard ask: the facts that its policy is given, what
/// the policy says of them, and whether the work is done. Each answer is a function of rules and
/// state, which must outlive it.
class ShardQuestions {
 public:
  using Members = absl::InlinedVector<MemberFacts, 8>;

  ShardQuestions(const ShardRules& rules, const ShardState& state) : rules_(rules), state_(state) {}

  MemberFacts FactsOf(WorkerId worker, const MemberRecord& member) const;

  /// Returns the facts about the members, if the policy waits for any; else none.
  Members MembersNow() const;

  /// Returns the facts about the shard. `members` must outlive them.
  ShardFacts FactsWith(const Members& members) const;

  /// Returns which members, or how many gradients, the open round waits for, as the policy says.
  Lack Lacks() const;

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

  const ShardRules& rules_;
  const ShardState& state_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CORE_SHARD_SHARD_QUESTIONS_H_
