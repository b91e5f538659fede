#ifndef SLIPSTREAM_SERVER_CORE_SHARD_COMPOSITE_JUDGE_H_
#define SLIPSTREAM_SERVER_CORE_SHARD_COMPOSITE_JUDGE_H_

#include <optional>
#include <string>

#include "common/protocol/shard_messages.h"
#include "server/core/shard/push_judge.h"
#include "server/core/shard/shard_rules.h"
#include "server/core/shard/shard_state.h"

namespace slipstream {

/// Judges the pushes of aggregators, which combine those of several workers. All of their parts
/// count, or none. One that comes again gets its first answer.
///
/// Each verdict is a function of the push, of rules and of state, as a PushJudge's is.
class CompositeJudge {
 public:
  CompositeJudge(const ShardRules& rules, const ShardState& state)
      : rules_(rules), state_(state), judge_(rules, state) {}

  std::optional<PushReply> Refuse(const PushHeader& header) const;

  /// Returns the first answer to a composite that comes again as it was; null if it does not.
  const PushReply* FirstAnswerTo(const PushHeader& composite) const;

  bool IsOfMembers(const PushHeader& header) const;

 private:
  /// Returns why the parts cannot count as one push; empty if they can.
  std::string WhyNotCombined(const PushHeader& header) const;

  const ShardRules& rules_;
  const ShardState& state_;
  const PushJudge judge_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CORE_SHARD_COMPOSITE_JUDGE_H_
