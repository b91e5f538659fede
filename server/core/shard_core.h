#ifndef SLIPSTREAM_SERVER_CORE_SHARD_CORE_H_
#define SLIPSTREAM_SERVER_CORE_SHARD_CORE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/ids.h"
#include "common/policy/learning_rate.h"
#include "common/policy/round_policy.h"
#include "common/policy/staleness_guard.h"
#include "common/protocol/shard_messages.h"
#include "common/protocol/view.h"
#include "common/run/run_spec.h"
#include "server/core/lag_tracker.h"
#include "server/core/member_table.h"
#include "server/core/round.h"
#include "server/core/round_work.h"
#include "server/core/shard_effects.h"

namespace slipstream {

/// Decides everything about one shard: which pushes count, when a round closes, which version
/// answers which call. It holds no numbers of the model; the shell runs the kernels that the
/// effects name, in their order, without a lock, and reports each published version.
///
/// Two clocks: `decided` is the version of the newest update ordered, `published` of the newest one
/// finished. Staleness counts decided versions, answers wait for publication. Calls whose version
/// is not published yet are parked under a ticket.
///
/// Invariants:
///  - published <= decided; both only rise, by one;
///  - a push of an identity and sequence joins at most one round, once;
///  - with a guard that rejects, blocks or drops, no gradient beyond its bound joins a round;
///  - a refused push changes nothing but the counters of refusals;
///  - a ticket is released at most once, and never after it was cancelled;
///  - every folded push belongs to the round of the update that follows.
///
/// Not thread-safe: one owner, which serialises calls.
class ShardCore {
 public:
  struct Options {
    ConsistencySpec consistency;
    OptimizerSpec::StalenessScaling staleness_scaling = OptimizerSpec::StalenessScaling::kNone;

    /// The update rule takes steps whose length does not depend on the gradient's, as Adam does:
    /// what compensates the mean staleness scales the step then.
    bool scales_step = false;
    double learning_rate = 0.05;
    ScheduleSpec schedule;
    uint32_t epochs = 1;

    /// The first shard of a run. Under synchronous policies it names the mini-batches, and so knows
    /// when the run ends; the others learn the last version from the coordinator. Under a guard
    /// that blocks, it alone lets workers wait: two that waited at two shards, each for the other's
    /// gradient, would wait for ever.
    bool is_first = true;

    /// Gradients that a worker has on their way at a time.
    uint32_t gradients_in_flight = 1;

    /// Payload bytes of pushes on their way or held; more are answered RETRY_LATER. 0: as many as
    /// members may have on their way. What a round waits for before it can be folded has room
    /// beyond that, a push of each member and one for each that the round holds. Within that no
    /// member may have more pushes arriving than its gradients in flight, or one that begins many
    /// and ends none would keep the others out; where it is waited for one more, as a broken
    /// connection may be noticed later than it is replaced.
    size_t push_bytes_max = 0;

    /// Calls waiting for a version; further pulls are refused.
    size_t parked_max = 16'384;

    /// Pulls that readers who are not members may have under way, all together; further ones wait.
    /// A member may have one. So versions held by readers are bounded, and updates never wait.
    uint32_t reader_pulls_max = 2;

    /// Of `parked_max`, what pulls of such readers may take, and those of one member: more than it
    /// has of its own, as a broken connection may be noticed later than it is replaced.
    size_t parked_readers_max = 256;
    size_t parked_of_member_max = 16;
  };

  /// Who pulls: a member, or nothing for any other reader. A worker that comes back does not wait
  /// for the calls of its past life.
  using Reader = std::optional<std::pair<WorkerId, Incarnation>>;
  static Reader ReaderOf(const PullRequest& request);

  /// What is known once a client has named the model. Constant from then on.
  struct Plan {
    uint64_t run = 0;
    uint64_t shard_map = 0;
    uint64_t count = 0;  // Values of this shard.
    uint64_t batches_total = 0;
    uint64_t examples_per_epoch = 0;
  };

  explicit ShardCore(const Options& options);

  // What the coordinator says.

  /// REQUIRES: no plan was set before.
  void SetPlan(const Plan& plan);
  Effects OnView(const View& view);

  /// `drain_version`: of a synchronous run in kDraining, the version that ends it.
  Effects OnPhase(Phase phase, Version drain_version);

  /// The open round is the last one with work; of a synchronous policy where work is handed out,
  /// without effect elsewhere.
  Effects OnWorkEnds();

  // What workers and readers say.

  PullDecision OnPull(const PullRequest& request);

  /// Whether the payload behind this header is wanted. Nothing: yes, and its bytes are counted as
  /// queued until ReleaseBytes. A reply: the push is refused already.
  std::optional<PushReply> OnPushHeader(const PushHeader& header);

  /// Whether a push is of a member, and of a slot that a member has; it may be refused all the
  /// same.
  bool IsOfMember(const PushHeader& header) const;

  /// The update that an admitted push will cause by itself if nothing else happens before it is
  /// complete; nothing if it will cause none, or one that others take part in. For a head start
  /// alone: what counts is what OnPush orders.
  std::optional<Forecast> ForecastUpdate(const PushHeader& header) const;

  /// What is known of a push once its payload has come.
  struct PushFacts {
    PushHeader header;
    uint64_t values_received = 0;
    bool is_finite = true;
    uint64_t checksum = 0;
  };
  PushDecision OnPush(const PushFacts& push);

  /// The rest of an admitted push will not come: its bytes are free again.
  void OnPushAbandoned(const PushHeader& header);

  /// The call behind the ticket is gone.
  void OnCancelled(Ticket ticket) { parked_.erase(ticket); }

  // What the shell has done.

  /// The initial weights are in place as version 0. REQUIRES: a plan; called once.
  Effects OnInitialized();
  Effects OnPublished(Version version);

  /// A pull that was served has sent everything, or its call is gone: its version is let go.
  Effects OnPullDone(Reader reader);

  /// Payload bytes of a complete push are free again.
  void ReleaseBytes(uint64_t bytes);

  // What status and log show.

  bool has_plan() const { return plan_.has_value(); }
  bool is_initialized() const { return is_initialized_; }

  /// No further update can come, and the last one is published.
  bool is_drained() const;
  Version decided() const { return decided_; }
  Version published() const { return published_; }
  Phase phase() const { return phase_; }
  const View& view() const { return members_.view(); }
  const LagTracker& lag() const { return lag_; }
  const Round& round() const { return round_; }
  const MemberTable& members() const { return members_; }
  const std::map<PushOutcome, uint64_t>& outcomes() const { return outcomes_; }

  /// How often the staleness guard engaged.
  struct GuardCounts {
    uint64_t rejected = 0;
    uint64_t dropped = 0;
    uint64_t scaled = 0;
    uint64_t rounds_held_back = 0;
  };
  const GuardCounts& guard_counts() const { return guard_counts_; }
  const StalenessGuardSpec& guard() const { return guard_.spec(); }
  uint64_t examples_applied() const { return examples_applied_; }

  /// Mini-batches that were handed out in closed rounds, on the shard that does; else 0.
  uint64_t batches_of_rounds() const { return work_.has_value() ? work_->batches_closed() : 0; }

  /// One more than the mini-batch of the newest gradient that this incarnation has pushed, also of
  /// one that was dropped; 0 before the first.
  uint64_t NewestBatchEnd(WorkerId worker, Incarnation incarnation) const;
  double current_learning_rate() const;

  /// The same times what staleness compensation has lately multiplied gradients by, on average.
  double effective_learning_rate() const { return current_learning_rate() * lag_.window_scale(); }

  /// Served and not done.
  uint32_t pulls_under_way() const { return members_.pulls_under_way() + pulls_of_others_; }
  size_t parked() const { return parked_.size(); }

  /// Of these, the pulls, by whom: of one reader, or of all.
  size_t ParkedPulls(const Reader& reader) const;
  size_t ParkedPulls() const;
  uint64_t bytes_queued() const { return bytes_queued_; }
  uint64_t bytes_queued_max() const;
  uint32_t round_size() const;

  /// Members the open round cannot close without, in order of ids; of synchronous policies only.
  std::vector<WorkerId> Awaited() const;

  /// Members whose gradient must come before the guard lets any round close, in order of ids; empty
  /// unless the open round would close but for them.
  std::vector<WorkerId> HeldBackBy() const;

  /// Ends the process if an invariant does not hold; for tests.
  void CheckInvariants() const;

 private:
  /// An answer that somebody is to get, now or later.
  struct Wanted {
    Version version{};
    std::optional<WorkerId> trainer;  // A gradient of the answer will come; with rounds, its work.
    uint32_t slot = 0;                // Of that gradient.
    bool is_pull = false;             // The answer to a push pins nothing.
    Reader reader;                    // Of a pull.
  };

  std::optional<PushReply> RefuseByHeader(const PushHeader& header) const;
  std::optional<PushReply> RefuseForRoom(const PushHeader& header) const;
  void NoteArrival(const PushHeader& header);

  /// Whether what is queued may have to wait for a push of this member.
  bool IsAwaited(WorkerId worker) const;
  std::optional<PushReply> RefuseBySequence(const PushHeader& header) const;
  std::optional<PushReply> RefuseByPayload(const PushFacts& push) const;
  std::optional<PushReply> RefuseByGuard(const PushHeader& header) const;
  PushReply Refusal(PushOutcome outcome, std::string message) const;
  PushReply Counted(PushReply refusal);
  std::optional<Refuse> RefusePull(const PullRequest& request) const;
  std::optional<Refuse> RefuseIdentity(const PullRequest& request) const;

  void NoteBatch(const PushHeader& header);
  PushDecision AnswerAgain(const PushFacts& push, const PushReply& first);
  PushDecision DropLate(const PushFacts& push, std::string message);
  PushDecision JoinRound(const PushFacts& push);
  PushDecision GiveUpPull(const PushFacts& push);
  void Finish(const PushFacts& push, Version answer_version, PushDecision& decision);

  /// No further gradient can count.
  bool WorkIsDone() const;

  /// Folds what can be folded and closes the round if it is due.
  void Advance(Effects& effects);
  void CloseRound(Effects& effects);
  RoundPolicy::RoundFacts RoundFacts(size_t awaited) const;
  bool IsExcuse(const PushHeader& header) const;
  uint64_t StalenessOf(const PushHeader& header) const;

  /// What staleness compensation and guard multiply this gradient by, if it joins the open round.
  double ScaleOf(const PushHeader& header) const;

  /// Whether the worker, which has a gradient in the open round, has to wait with this slot for
  /// those that hold the round back; never for a gradient of its own.
  bool ParksUntilRoundCloses(WorkerId worker, uint32_t slot) const;

  /// The worker waits for a later version than this synchronous round starts from, because it has
  /// come that far elsewhere. If it is the only one left, nobody else would ever bring the round.
  void ExcuseFromOpenRound(WorkerId worker, Effects& effects);

  /// From this version on the member owes rounds something, unless it did already.
  void OweFrom(WorkerId worker, Version version);

  /// The oldest version whose gradient this slot of the worker could still bring.
  Version OldestToTrainOn(WorkerId worker, uint32_t slot) const;

  /// A gradient of the answer will come.
  void NoteTrainer(const Wanted& wanted, Version base);
  std::variant<Serve, Park> ServeOrPark(const Wanted& wanted);
  bool CanServe(const Wanted& wanted) const;
  void BeginPull(const Reader& reader);
  std::optional<RoundWork> WorkFor(std::optional<WorkerId> trainer);
  void ReleaseParked(Effects& effects);
  std::vector<WorkerId> Owing() const;
  bool is_synchronous() const { return policy_.rounds_are_synchronous(); }

  // Constant after construction.
  const Options options_;
  const RoundPolicy policy_;
  const StalenessGuard guard_;

  // What the coordinator said.
  std::optional<Plan> plan_;
  std::optional<LearningRate> learning_rate_;
  std::optional<RoundWorkPlan> work_;  // Of synchronous policies, where it is handed out.
  MemberTable members_;
  Phase phase_ = Phase::kWaitingForServers;
  Version drain_version_{};

  // The update path.
  bool is_initialized_ = false;
  Version decided_{};
  Version published_{};
  Round round_;
  bool round_was_held_back_ = false;
  uint64_t next_push_ = 1;
  uint64_t examples_applied_ = 0;

  LagTracker lag_;
  std::map<PushOutcome, uint64_t> outcomes_;
  GuardCounts guard_counts_;
  uint64_t bytes_queued_ = 0;

  std::map<Ticket, Wanted> parked_;  // By age.
  uint32_t pulls_of_others_ = 0;     // Of readers who are no members: served and not done.
  uint64_t next_ticket_ = 1;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CORE_SHARD_CORE_H_
