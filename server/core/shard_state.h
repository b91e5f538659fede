#ifndef SLIPSTREAM_SERVER_CORE_SHARD_STATE_H_
#define SLIPSTREAM_SERVER_CORE_SHARD_STATE_H_

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "common/base/ids.h"
#include "common/policy/policy.h"
#include "common/protocol/shard_messages.h"
#include "common/protocol/view.h"
#include "server/core/lag_tracker.h"
#include "server/core/member_table.h"
#include "server/core/reader_pace.h"
#include "server/core/round.h"
#include "server/core/round_work.h"
#include "server/core/run_stages.h"
#include "server/core/saved_version.h"
#include "server/core/shard_output.h"
#include "server/core/unknown_members.h"

namespace slipstream {

/// The reader that pulls: a member in one incarnation, or nothing for any other reader. So a worker
/// that registers again does not wait for the calls of its older incarnation.
using Reader = std::optional<std::pair<WorkerId, Incarnation>>;

/// The part of the model that a shard holds, and how long the run is. It is constant once a client
/// has named the model.
struct ShardPlan {
  uint64_t run = 0;
  uint64_t shard_map = 0;
  uint64_t count = 0;  // The number of values of this shard.
  uint64_t batches_total = 0;
  uint64_t batches_per_epoch = 1;
  uint64_t examples_per_epoch = 0;

  template <typename Archive, typename Self>
  static void Parts(Archive& archive, Self& self) {
    archive(self.run, self.shard_map, self.count, self.batches_total, self.batches_per_epoch,
            self.examples_per_epoch);
  }
};

/// The facts about one version.
struct VersionRecord {
  /// The number of examples whose gradients are part of it.
  uint64_t examples = 0;

  /// As in WeightsHeader. Version 0 is the first state of every model, and has a stamp under every
  /// policy.
  std::optional<Stamp> stamp;
  uint64_t label = 0;

  template <typename Archive, typename Self>
  static void Parts(Archive& archive, Self& self) {
    archive(self.examples, self.stamp, self.label);
  }
};

/// A pull of a reader who is not a member, while its answer is sent.
struct PullUnderWay {
  Version version{};

  /// Set if the reader has been too slow, and the shell was told to end the pull.
  bool has_lagged = false;

  template <typename Archive, typename Self>
  static void Parts(Archive& archive, Self& self) {
    archive(self.version, self.has_lagged);
  }
};

/// A call that is to be answered, now or later.
struct PendingCall {
  CallId call{};

  /// The state of the model that a reader asks for; absent for the newest one.
  std::optional<Stamp> exact;

  /// The call waits until the slowest member in the pace has reached the condition's clock, and
  /// then until its version, and all that was decided by then, is published. A clock of 0 means
  /// that no member is waited for.
  PullCondition condition;

  std::optional<PushReply> push;  // Set for a push: its reply.
  bool wants_weights = false;     // Set for a pull and for an exchange.
  std::optional<Version> held;    // The version whose values the caller has already.
  /// A worker that will push a gradient computed from the answer.
  struct Trainer {
    WorkerId worker{};
    Incarnation incarnation{};
    uint32_t slot = 0;  // The slot of that gradient.

    /// The place of its push among the parts of this one; 0 if this one has none.
    uint32_t part = 0;

    template <typename Archive, typename Self>
    static void Parts(Archive& archive, Self& self) {
      archive(self.worker, self.incarnation, self.slot, self.part);
    }
  };
  // Where work comes in rounds, the answer names the work of each. There are several only if the
  // call is a push that combines those of several workers, of which there are `parts`.
  absl::InlinedVector<Trainer, 1> trainers;
  uint32_t parts = 0;
  bool is_pull = false;  // Only the answer to a pull pins a version.

  /// Whether its worker goes on to a gradient with the answer. It then waits for readers, too.
  bool goes_on = false;
  uint64_t awaited_reader = 0;  // As PullRequest::reader.
  Reader reader;                // The reader whose pull it is.

  template <typename Archive, typename Self>
  static void Parts(Archive& archive, Self& self) {
    archive(self.call, self.exact, self.condition, self.push, self.wants_weights, self.held,
            self.trainers, self.parts, self.is_pull, self.goes_on, self.awaited_reader,
            self.reader);
  }
};

/// How often the staleness guard engaged.
struct GuardCounts {
  uint64_t rejected = 0;
  uint64_t dropped = 0;
  uint64_t scaled = 0;
  uint64_t rounds_held_back = 0;

  template <typename Archive, typename Self>
  static void Parts(Archive& archive, Self& self) {
    archive(self.rejected, self.dropped, self.scaled, self.rounds_held_back);
  }
};

/// All that a shard's machine remembers, as one value. A machine that continues with a copy of it,
/// under the same options, makes the same decisions.
struct ShardState {
  // From the coordinator's orders.
  uint64_t orders = 0;  // The number of the newest orders.

  /// The run's stages as the orders have them; empty if they are those of the options.
  std::vector<RunStage> stages;

  /// The place in them.
  uint32_t stage = 0;

  /// The version with which the newest stage began that did not begin at once. A gradient of an
  /// older version is of an earlier stage, which ended without it.
  Version stage_begin{};
  Phase phase = Phase::kWaitingForServers;
  Version drain_version{};
  std::optional<ShardPlan> plan;
  std::optional<RoundWorkPlan> work;  // Set where work comes in rounds, on shard 0.
  MemberTable members;
  UnknownMembers unknown_members;

  // The only grant whose initial weights may be taken, and the client that holds it; 0 if there is
  // none. Then the grant of the weights that came last, and that of the weights that are version 0.
  uint64_t grant = 0;
  Identity initializer;
  uint64_t received_grant = 0;
  uint64_t initialized_grant = 0;

  /// The life of the shard to which all versions and sequences here belong, and the version with
  /// which it began.
  Life life{};
  Version life_begin{};

  // Used where pulls wait for members' clocks. `slowest` is the least clock of the members at work;
  // empty while there are none. `pace` is the highest that it has ever been, and a worker that
  // begins to work continues from there.
  std::optional<WorkerClock> slowest;
  WorkerClock pace{};

  // The update path. Invariant: published <= decided; both only rise, by one.
  bool is_initialized = false;
  Version decided{};
  Version published{};
  Round round;
  bool round_was_held_back = false;

  /// Under hardsync, the workers whose mini-batches were done in the round that made `decided`.
  /// Empty after the step to another stage or life.
  std::set<WorkerId> did_last;
  uint64_t next_push = 1;

  /// The versions up to `decided`, from the oldest one that is kept for readers on. Invariant:
  /// those after `published`, and before them the newest Options::versions_kept, or as many as
  /// there are from `kept_from` on.
  std::deque<VersionRecord> versions = {VersionRecord{.stamp = Stamp{}}};

  /// The oldest version whose values did not end with an earlier process.
  Version kept_from{};

  // Used if the shard saves its state.

  /// The newest order to save.
  SaveOrder save;

  /// Set if this state is to be saved once the open round is empty and `decided` is a version that
  /// was not saved.
  bool save_is_due = false;

  /// The version that the shell was told to save last; empty before the first.
  std::optional<Version> last_saved;

  /// The update that is being made of a push while the push arrives. Invariant: it is based on
  /// version `decided`, which is published, and the open round is empty.
  struct Draft {
    PushId push{};
    Forecast forecast;

    template <typename Archive, typename Self>
    static void Parts(Archive& archive, Self& self) {
      archive(self.push, self.forecast);
    }
  };
  std::optional<Draft> draft;

  /// The calls that wait. Invariant: no two have the same name.
  std::vector<PendingCall> waiting;  // By age.

  /// The pulls of readers who are not members that are served and not done.
  std::map<CallId, PullUnderWay> reader_pulls;

  /// Used on shard 0, which holds workers back for all shards.
  ReaderPace reader_pace;

  /// The number of payload bytes of pushes that arrive or are held.
  uint64_t bytes_queued = 0;

  // For status.
  LagTracker lag;
  std::map<PushOutcome, uint64_t> outcomes;
  GuardCounts guard_counts;

  template <typename Archive, typename Self>
  static void Parts(Archive& archive, Self& self) {
    archive(self.orders, self.stages, self.stage, self.stage_begin, self.phase, self.drain_version,
            self.plan, self.work, self.members, self.unknown_members, self.grant, self.initializer,
            self.received_grant, self.initialized_grant, self.life, self.life_begin, self.slowest,
            self.pace, self.is_initialized, self.decided, self.published, self.round,
            self.round_was_held_back, self.did_last, self.next_push, self.versions, self.kept_from,
            self.save, self.save_is_due, self.last_saved, self.draft, self.waiting,
            self.reader_pulls, self.reader_pace, self.bytes_queued, self.lag, self.outcomes,
            self.guard_counts);
  }
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CORE_SHARD_STATE_H_
