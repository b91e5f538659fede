#ifndef SLIPSTREAM_SERVER_CORE_SHARD_ROUND_PROGRESS_H_
#define SLIPSTREAM_SERVER_CORE_SHARD_ROUND_PROGRESS_H_

#include <optional>

#include "common/base/ids.h"
#include "common/protocol/shard_messages.h"
#include "server/core/shard/shard_output.h"
#include "server/core/shard/shard_questions.h"
#include "server/core/shard/shard_rules.h"
#include "server/core/shard/shard_state.h"

namespace slipstream {

/// Takes the open round, and the pace of its members, as far as they can go. It lasts for one
/// event: what it changes is the state that it is made with.
class RoundProgress {
 public:
  RoundProgress(const ShardRules& rules, ShardState& state)
      : rules_(rules), state_(state), ask_(rules, state) {}

  /// Folds what can be folded and closes the round if it is due.
  void Advance(ShardOutput& output);

  /// Excuses a worker that waits for a later version than the open round starts from, because it
  /// has come that far on other shards. If the round lacks only this worker, nobody else would ever
  /// make that version.
  void Excuse(WorkerId worker, ShardOutput& output);

  /// Notes that from this version on the member owes rounds a gradient or an excuse, unless it did
  /// already.
  void OweFrom(WorkerId worker, Version version);

  /// Notes that the worker has work at hand and names its clock.
  void EnterPace(WorkerId worker, WorkerClock named);

  /// Notes that the members, their clocks, or which of them are at work may have changed.
  void OnPaceChanged();

 private:
  void CloseRound(ShardOutput& output);

  /// Returns the stamp of the version that the open round makes.
  std::optional<Stamp> StampOfRound() const;

  /// Returns the forecast that the update and folds of `output` fulfil, if the update is made of
  /// one gradient alone.
  static std::optional<Forecast> AsForecast(const ShardOutput& output);

  const ShardRules& rules_;
  ShardState& state_;
  const ShardQuestions ask_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CORE_SHARD_ROUND_PROGRESS_H_
