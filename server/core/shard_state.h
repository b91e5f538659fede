#ifndef SLIPSTREAM_SERVER_CORE_SHARD_STATE_H_
#define SLIPSTREAM_SERVER_CORE_SHARD_STATE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "common/base/ids.h"
#include "common/policy/policy.h"
#include "common/protocol/shard_messages.h"
#include "common/protocol/view.h"
#include "server/core/lag_tracker.h"
#include "server/core/member_table.h"
#include "server/core/round.h"
#include "server/core/round_work.h"
#include "server/core/shard_output.h"
#include "server/core/unknown_members.h"

namespace slipstream {

/// Who pulls: a member, or nothing for any other reader. A worker that comes back does not wait
/// for the calls of its past life.
using Reader = std::optional<std::pair<WorkerId, Incarnation>>;

/// What a shard is to hold. Constant once a client has named the model.
struct ShardPlan {
  uint64_t run = 0;
  uint64_t shard_map = 0;
  uint64_t count = 0;  // Values of this shard.
  uint64_t batches_total = 0;
  uint64_t examples_per_epoch = 0;
};

/// A call that is to be answered, now or later.
struct PendingCall {
  CallId call{};

  /// It waits until the slowest member in the pace has come to the condition's clock, and then for
  /// its version, and all that was decided until then, to be published. A clock of 0: that has
  /// been.
  PullCondition condition;

  std::optional<PushReply> push;    // Of a push: what it is answered.
  bool wants_weights = false;       // Of a pull, or of an exchange.
  std::optional<Version> held;      // Its values are with the caller already.
  std::optional<WorkerId> trainer;  // A gradient of the answer will come; with rounds, its work.
  uint32_t slot = 0;                // Of that gradient.
  bool is_pull = false;             // The answer to a push pins nothing.
  Reader reader;                    // Whose call it is.
};

/// How often the staleness guard engaged.
struct GuardCounts {
  uint64_t rejected = 0;
  uint64_t dropped = 0;
  uint64_t scaled = 0;
  uint64_t rounds_held_back = 0;
};

/// All that a shard's machine remembers, as one value: whoever copies it and goes on with the copy,
/// under the same options, decides the same.
struct ShardState {
  // What the coordinator said.
  uint64_t orders = 0;  // Number of the newest.
  Phase phase = Phase::kWaitingForServers;
  Version drain_version{};
  std::optional<ShardPlan> plan;
  std::optional<RoundWorkPlan> work;  // Where work comes in rounds, on the first shard.
  MemberTable members;
  UnknownMembers unknown_members;

  // The only grant whose initial weights may be taken, and from whom; 0 for none. And the grants of
  // those that came last, and of those that are version 0.
  uint64_t grant = 0;
  Identity initializer;
  uint64_t received_grant = 0;
  uint64_t initialized_grant = 0;

  /// That all versions and sequences here are of. Nothing raises it yet.
  Life life{};

  // Where pulls wait for members' clocks: the slowest of those at work, nothing while there are
  // none; and the highest that it has ever been, where whoever comes to work goes on.
  std::optional<WorkerClock> slowest;
  WorkerClock pace{};

  // The update path. Invariant: published <= decided; both only rise, by one.
  bool is_initialized = false;
  Version decided{};
  Version published{};
  Round round;
  bool round_was_held_back = false;
  uint64_t next_push = 1;
  uint64_t examples_applied = 0;

  /// The update that is being made of a push while that arrives. Invariant: of version `decided`,
  /// which is published, and the open round is empty.
  struct Draft {
    PushId push{};
    Forecast forecast;
  };
  std::optional<Draft> draft;

  /// Invariant: of those that wait, no two have one name.
  std::vector<PendingCall> waiting;  // By age.

  /// Pulls of readers who are no members: served and not done.
  uint32_t pulls_of_others = 0;

  /// Payload bytes of pushes on their way or held.
  uint64_t bytes_queued = 0;

  // For status.
  LagTracker lag;
  std::map<PushOutcome, uint64_t> outcomes;
  GuardCounts guard_counts;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CORE_SHARD_STATE_H_
