#ifndef SLIPSTREAM_SERVER_CORE_SHARD_PUSH_JUDGE_H_
#define SLIPSTREAM_SERVER_CORE_SHARD_PUSH_JUDGE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "common/base/ids.h"
#include "common/policy/policy.h"
#include "common/protocol/shard_messages.h"
#include "server/core/shard/member_table.h"
#include "server/core/shard/push_facts.h"
#include "server/core/shard/shard_output.h"
#include "server/core/shard/shard_questions.h"
#include "server/core/shard/shard_rules.h"
#include "server/core/shard/shard_state.h"

namespace slipstream {

/// Judges the pushes of workers: whether the payload behind a header is wanted, and which update it
/// will cause. Each verdict is a function of the push, of rules and of state, and changes nothing.
/// Rules and state must outlive the judge.
///
/// A header is judged twice: when it comes, and once its payload has come, as the view or the
/// sequence may have moved on.
class PushJudge {
 public:
  PushJudge(const ShardRules& rules, const ShardState& state)
      : rules_(rules), state_(state), ask_(rules, state) {}

  const ShardQuestions& ask() const { return ask_; }

  // Verdicts: the answer to a push that is refused, nothing if this is no reason to refuse it.

  std::optional<PushReply> RefuseByHeader(const PushHeader& header) const;

  // REQUIRE: RefuseByHeader has none.

  std::optional<PushReply> RefuseTooStale(const PushHeader& header) const;
  std::optional<PushReply> RefuseForMemory(const PushHeader& header) const;

  /// Judges a payload that has come.
  std::optional<PushReply> RefuseByPayload(const PushFacts& facts) const;

  /// Makes a refusal of the shard as it is.
  PushReply Refusal(PushOutcome outcome, std::string message) const;

  /// Notes in a reply of which generation it is, and what survives the end of the server.
  void Sign(PushReply& reply) const;

  /// Asks the policy about a member's gradient; kTooStale also if it cannot be compensated.
  Admission Admit(const PushHeader& header) const;

  /// Returns whether the push of which this is a late repetition was refused, if it came in time.
  bool StaysTooStale(const PushHeader& header) const;

  /// Returns the update that a push will cause by itself if nothing else happens before it is
  /// complete; nothing if it will cause none, or one in which other pushes take part.
  std::optional<Forecast> ForecastUpdate(const PushHeader& header) const;

  // Facts about a push.

  /// Returns whether its sender is a member and its slot one that members have.
  bool IsOfMember(const PushHeader& header) const;

  /// Return whether the push is the member's next one, and, once it is answered, its newest.
  bool IsNext(const PushHeader& header) const;
  bool IsNewest(const PushHeader& header) const;

  /// Returns whether it only says that no gradient will come.
  bool IsExcuse(const PushHeader& header) const;
  bool IsOfEarlierStage(const PushHeader& header) const {
    return BaseOf(header) < state_.run.stage_begin;
  }

  /// Returns the answer that this push got in an earlier generation, if it is part of the weights
  /// and the answer is kept; else nullptr.
  const MemberRecord::Answer* FormerAnswer(const PushHeader& header) const;

  /// Returns the version that the push counts as computed from: that of its header, but whole
  /// weights are as new as can be.
  Version BaseOf(const PushHeader& header) const {
    return header.kind == PushKind::kValues ? decided() : header.base;
  }
  uint64_t StalenessOf(const PushHeader& header) const;

  /// Returns the factor by which staleness compensation and guard multiply this gradient if it
  /// joins the open round.
  double ScaleOf(const PushHeader& header) const;

  uint64_t bytes_queued_max() const;

 private:
  std::optional<PushReply> RefuseByGeneration(const PushHeader& header) const;
  std::optional<PushReply> RefuseBySequence(const PushHeader& header) const;

  /// Returns whether the queued payloads may have to wait for a push of this member.
  bool IsAwaited(WorkerId worker) const;

  /// Returns whether compensation would need weights that are not kept.
  bool IsBaseGone(const PushHeader& header) const;

  Version decided() const { return state_.versions.decided(); }
  Generation generation() const { return state_.versions.generation(); }

  const ShardRules& rules_;
  const ShardState& state_;
  const ShardQuestions ask_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CORE_SHARD_PUSH_JUDGE_H_
