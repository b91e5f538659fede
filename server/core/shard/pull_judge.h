#ifndef SLIPSTREAM_SERVER_CORE_SHARD_PULL_JUDGE_H_
#define SLIPSTREAM_SERVER_CORE_SHARD_PULL_JUDGE_H_

#include <optional>

#include "common/base/ids.h"
#include "common/protocol/shard_messages.h"
#include "server/core/shard/shard_output.h"
#include "server/core/shard/shard_questions.h"
#include "server/core/shard/shard_rules.h"
#include "server/core/shard/shard_state.h"
#include "server/core/shard/waiting_calls.h"

namespace slipstream {

/// Judges pulls, and other calls that wait for weights: whether one is taken, whether it can be
/// answered now, and with which version. Each verdict is a function of the call, of rules and of
/// state, and changes nothing. Rules and state must outlive the judge.
class PullJudge {
 public:
  PullJudge(const ShardRules& rules, const ShardState& state)
      : rules_(rules), state_(state), ask_(rules, state) {}

  const ShardQuestions& ask() const { return ask_; }

  /// Returns the meaning that a pull has in the shard's generation.
  PullRequest InThisGeneration(PullRequest request) const;

  /// Returns why a pull of this generation is refused; nothing if it is taken.
  std::optional<PullRefusal> Refuse(const PullRequest& request) const;

  bool CanServe(const PendingCall& call) const;

  /// Returns the conditions that waiting calls must not be beyond, or they can only go on waiting.
  WaitingCalls::Reached Reached() const;

  /// Returns whether nobody waits for the clocks of others any more.
  bool IsFree() const { return state_.run.phase >= Phase::kDraining; }

  /// Returns whether the state of the model that was asked for will not come (again) at this shard.
  bool IsGone(const Stamp& stamp) const;

  /// Returns the version that a call is answered with. REQUIRES: CanServe.
  Version VersionFor(const PendingCall& call) const;

  /// Returns the version before the newest one if this worker does the last round again, because
  /// the gradient there is of a worker before it in its place, and other shards may lack that.
  std::optional<Version> VersionToRepeat(WorkerId worker, Incarnation incarnation) const;

  /// Returns whether a reader who is not a member waits for nothing but the end of another's pull.
  bool ReadersWaitForPlace() const;

 private:
  std::optional<PullRefusal> RefuseIdentity(const PullRequest& request) const;
  bool NothingNewerComes() const;

  Version decided() const { return state_.versions.decided(); }
  Version published() const { return state_.versions.published(); }

  const ShardRules& rules_;
  const ShardState& state_;
  const ShardQuestions ask_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CORE_SHARD_PULL_JUDGE_H_
