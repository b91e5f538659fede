#ifndef SLIPSTREAM_SERVER_CORE_SHARD_CALL_ANSWERING_H_
#define SLIPSTREAM_SERVER_CORE_SHARD_CALL_ANSWERING_H_

#include <optional>

#include "common/base/ids.h"
#include "common/protocol/shard_messages.h"
#include "server/core/shard/pull_judge.h"
#include "server/core/shard/shard_output.h"
#include "server/core/shard/shard_rules.h"
#include "server/core/shard/shard_state.h"
#include "server/core/shard/waiting_calls.h"

namespace slipstream {

/// Answers calls, those that come and those that wait, and notes what their answers lead to: the
/// pulls under way, the gradients that will come, the mini-batches named. It lasts for one event:
/// what it changes is the state that it is made with.
class CallAnswering {
 public:
  CallAnswering(const ShardRules& rules, ShardState& state)
      : rules_(rules), state_(state), judge_(rules, state) {}

  /// Answers the call if its condition is met; else the call waits.
  void Answer(PendingCall call, ShardOutput& output);

  /// Answers the waiting calls whose conditions are met, by age.
  void ServeWaiting(ShardOutput& output);

 private:
  /// Answers the call if that can be done now. Returns false if it has to wait.
  bool TryAnswer(PendingCall& call, ShardOutput& output);
  void SettlePace(PullCondition& condition) const;
  ShardAnswer Served(PendingCall call);

  /// Returns what the answer says to this worker, and adds the worker to those that train on it.
  PartAnswer ServeTrainer(const PendingCall::Trainer& trainer, ShardAnswer& answer);
  std::optional<RoundWork> WorkFor(const PendingCall::Trainer& trainer, Version version);

  /// Notes that gradients computed from `base`, the version of the call's answer, will come.
  void NoteTrainers(const PendingCall& call, Version base);
  void BeginPull(const PendingCall& call);

  const ShardRules& rules_;
  ShardState& state_;
  const PullJudge judge_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CORE_SHARD_CALL_ANSWERING_H_
