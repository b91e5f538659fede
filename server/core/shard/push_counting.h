#ifndef SLIPSTREAM_SERVER_CORE_SHARD_PUSH_COUNTING_H_
#define SLIPSTREAM_SERVER_CORE_SHARD_PUSH_COUNTING_H_

#include <cstdint>
#include <optional>
#include <string>

#include "common/base/ids.h"
#include "common/protocol/shard_messages.h"
#include "server/core/shard/push_facts.h"
#include "server/core/shard/push_judge.h"
#include "server/core/shard/round_progress.h"
#include "server/core/shard/shard_output.h"
#include "server/core/shard/shard_rules.h"
#include "server/core/shard/shard_state.h"
#include "server/core/shard/waiting_calls.h"

namespace slipstream {

/// Counts a complete push: whether and in which round, and what answers it. It lasts for one event:
/// what it changes is the state that it is made with.
class PushCounting {
 public:
  PushCounting(const ShardRules& rules, ShardState& state)
      : rules_(rules), state_(state), judge_(rules, state), progress_(rules, state) {}

  /// The decision about a push, and how its call goes on.
  struct Decision {
    PushReply reply;
    bool took_effect = true;

    /// The version that the answer waits for or brings. If it is empty, `reply` goes out at once
    /// and alone.
    std::optional<Version> answer_version;
  };
  Decision Decide(const PushFacts& facts, ShardOutput& output);

  /// Makes the call that the decision answers, now or later, and notes what its workers go on to.
  /// REQUIRES: the decision has an answer version.
  PendingCall CallOf(CallId call, const PushHeader& header, const Decision& decision);

 private:
  /// Does what Decide does, for a push that has parts.
  Decision DecideComposite(const PushFacts& facts, ShardOutput& output);
  Decision Refused(PushReply refusal);
  Decision GiveUpPull(const PushFacts& facts, ShardOutput& output);
  Decision AnswerAgain(const PushFacts& facts, const PushReply& first);
  Decision DropLate(const PushFacts& facts, std::string message);

  /// Takes a push of one worker, or of several, into the open round.
  Decision JoinRound(const PushFacts& facts, ShardOutput& output);

  /// Adds a push with values to the open round.
  void Contribute(const PushFacts& facts);
  void NoteBatch(const PushHeader& header);
  void NotePace(const PushHeader& header);

  /// Return the version that answers an exchange without an update: to one worker, or to several.
  Version AnswerVersion(const PushHeader& header) const;
  std::optional<Version> AnswerVersionOfAll(const PushHeader& header) const;

  /// Notes in the call that answers a push whether this worker goes on with the answer.
  void ExpectMore(const PushHeader& push, uint32_t part, PendingCall& call);

  /// Returns the stamp that a push gives to the version made of it, if it gives one.
  static std::optional<Stamp> StampOf(const PushHeader& header);

  const ShardRules& rules_;
  ShardState& state_;
  const PushJudge judge_;
  RoundProgress progress_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CORE_SHARD_PUSH_COUNTING_H_
