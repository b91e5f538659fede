#ifndef SLIPSTREAM_SERVER_CORE_SHARD_SHARD_MACHINE_H_
#define SLIPSTREAM_SERVER_CORE_SHARD_SHARD_MACHINE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/policy/policy.h"
#include "common/protocol/shard_messages.h"
#include "common/protocol/view.h"
#include "common/settings/run_spec.h"
#include "server/core/orders.h"
#include "server/core/run_stages.h"
#include "server/core/shard/call_answering.h"
#include "server/core/shard/pull_judge.h"
#include "server/core/shard/push_facts.h"
#include "server/core/shard/push_judge.h"
#include "server/core/shard/round_progress.h"
#include "server/core/shard/shard_machine_options.h"
#include "server/core/shard/shard_output.h"
#include "server/core/shard/shard_return.h"
#include "server/core/shard/shard_rules.h"
#include "server/core/shard/shard_state.h"

namespace slipstream {

/// Decides everything about one shard: which client gives it its first weights, which pushes count,
/// when a round closes, which version answers which call, and which update is drafted before its
/// push is complete. It holds no values of the model: the shell runs the kernels that the output
/// names, in this order, without a lock, and reports each published version.
///
/// The shell gives each call a name. Each call gets one answer, in the output of the event that
/// brought it or of a later event, unless OnCancelled comes first. Then its name is free again.
///
/// There are two clocks: `decided` is the version of the newest update ordered, `published` that of
/// the newest update finished. Staleness counts decided versions; answers wait for publication.
///
/// Invariants, beside those of ShardState:
///  - a push of an identity and sequence joins at most one round, once;
///  - with a guard that rejects, blocks or drops, no gradient beyond its bound joins a round;
///  - a refused push changes only the counters of refusals, the bases kept, the members asked about
///    and, if it is too stale and others wait for clocks, its sender's clock;
///  - every folded push belongs to the round of the update that follows.
///
/// Not thread-safe: one owner, which serialises calls.
class ShardMachine {
 public:
  /// The number of versions that may be read when they are not kept any more, all readers who are
  /// not members together.
  static constexpr size_t kReaderVersionsMax = ReaderPulls::kVersionsMax;

  using Options = ShardMachineOptions;
  using PushFacts = slipstream::PushFacts;

  explicit ShardMachine(const Options& options);

  const ShardState& state() const { return state_; }

  /// Continues from the state of a machine with the same options, or what Returned makes of it.
  void Restore(ShardState state);

  // Events from the coordinator.

  /// Takes orders that are newer than those before; others have no effect. REQUIRES: if these are
  /// the first orders that name a model, the shell has memory for as many values as ValuesOrdered
  /// says.
  ShardOutput OnOrders(const ServerOrders& orders);

  /// Note that the shell asks the coordinator for news, and that it has taken the answer and the
  /// orders in it. Return whether that has changed anything.
  bool OnCoordinatorAsked() { return state_.unknown_members.OnAsked(); }
  bool OnCoordinatorAnswered() { return state_.unknown_members.OnAnswered(); }

  /// Returns for how many values the shard needs memory, if these are the first orders that
  /// name a model; else nothing.
  std::optional<uint64_t> ValuesOrdered(const ServerOrders& orders) const;

  // The parts of which OnOrders consists.

  /// REQUIRES: no plan was set before.
  void SetPlan(const ShardPlan& plan);
  ShardOutput OnView(const View& view);

  /// Takes the stages of the run from now on, with those that a change has added. Empty: they are
  /// those of the options. Where work comes in rounds, the present stage may end earlier than
  /// before, but with an epoch of which no mini-batch was handed out.
  void OnStages(const std::vector<RunStage>& stages);

  /// Goes on to a later stage of the run: to its policy and rate, and its part of the mini-batches.
  /// Has no effect if the stage has been reached, if there is no such stage, or without a plan.
  /// Gradients in the open round stay there; OnPhase, which has to follow, closes the round if the
  /// new policy finds that it lacks nothing. REQUIRES: no gradient is in the open round, unless the
  /// stage begins at once.
  void OnStage(uint32_t stage);

  /// `drain_version`: the version that ends the run, in kDraining where work comes in rounds.
  ShardOutput OnPhase(Phase phase, Version drain_version);

  /// Makes the open round the last one with work, on the shard that hands it out. Has no effect on
  /// other shards.
  ShardOutput OnWorkEnds();

  /// Has workers wait for these readers alone, on shard 0. Has no effect on other shards.
  ShardOutput OnAwaitedReaders(const LagLimits& readers);

  /// Takes the order to save, if it is newer than those before and the shard saves. If it names a
  /// version, the state is due to be saved with that one, and not at all if a later one is decided
  /// already; else with the next version that has not been saved. The output
  /// of an event that leaves the open round empty then says so.
  ShardOutput OnSaveOrder(const SaveOrder& order);

  // Events from the client that brings the initial weights.

  /// Returns OK if the initial weights may come from this client at present, else why not.
  absl::Status CheckInitializer(const InitializeHeader& header) const;

  /// Notes that all initial weights have come. Returns true if the shell is to put them in place
  /// and then to call OnInitialized, false if they had come before. Fails as CheckInitializer does:
  /// the grant may have gone to another client meanwhile.
  absl::StatusOr<bool> OnInitialWeights(const InitializeHeader& header);

  // Events from workers and readers.

  ShardOutput OnPull(CallId call, const PullRequest& pull);

  /// Decides whether the payload behind this header is wanted. If it is, its bytes are counted as
  /// queued, and exactly one of OnPush and OnPushAbandoned has to follow.
  PushAdmission OnPushHeader(const PushHeader& header);

  /// Decides about a complete push: whether and in which round it counts, and what answers it.
  ShardOutput OnPush(CallId call, const PushFacts& facts);

  /// Notes that the rest of an admitted push will not come. Its bytes are free again.
  void OnPushAbandoned(PushId push, const PushHeader& header);

  /// Notes that the draft, if it is one of this push, was not begun or was discarded. Another may
  /// be begun.
  void OnDraftEnded(PushId push);

  /// Notes that the client behind the call is gone. Returns true if the call was waiting; then it
  /// gets no answer.
  bool OnCancelled(CallId call);

  // Reports of what the shell has done.

  /// Notes that the initial weights of this grant are in place as version 0. REQUIRES: a plan.
  ShardOutput OnInitialized(uint64_t grant);
  ShardOutput OnPublished(Version version);

  /// Notes that a served pull has sent everything, or that its call is gone. Its version is
  /// released.
  ShardOutput OnPullDone(CallId call, const Reader& reader);

  /// Notes that payload bytes of kept pushes are free again.
  void ReleaseBytes(uint64_t bytes);

  /// Continues as Continued says, in the process that follows one that has ended.
  ShardOutput OnProcessEnd(const EndedProcess& end);

  // For status and log.

  bool has_plan() const { return state_.run.plan.has_value(); }
  bool is_initialized() const { return state_.initial_weights.is_initialized(); }

  /// Whether the weights of the newest grant, or those of a checkpoint, are in place.
  bool has_granted_weights() const {
    return generation() > Generation{} || state_.initial_weights.has_granted();
  }

  /// Whether the shard returns to a checkpoint without the others.
  bool goes_alone() const { return !rules_.works_in_rounds(); }

  /// Returns true once no further update can come and the last one is published.
  bool is_drained() const { return judge().ask().IsDrained(); }
  Version decided() const { return state_.versions.decided(); }
  Version published() const { return state_.versions.published(); }
  Phase phase() const { return state_.run.phase; }
  uint32_t stage() const { return state_.run.stage; }
  const View& view() const { return state_.members.view(); }
  const LagTracker& lag() const { return state_.tally.lag; }
  const Round& round() const { return state_.open.round; }
  const MemberTable& members() const { return state_.members; }
  const std::map<PushOutcome, uint64_t>& outcomes() const { return state_.tally.outcomes; }
  const GuardCounts& guard_counts() const { return state_.tally.guard_counts; }
  const StalenessGuardSpec& guard() const { return rules_.guard().spec(); }
  Generation generation() const { return state_.versions.generation(); }

  /// The version with which the shard began its generation.
  Version generation_begin() const { return state_.versions.generation_begin(); }

  /// Returns the number of examples whose gradients are part of the version decided last.
  uint64_t examples_applied() const { return state_.versions.newest().examples; }

  /// Returns the oldest version that the shell has to keep for readers.
  Version oldest_kept() const { return state_.versions.oldest(); }

  /// Returns what is known of a version. REQUIRES: it is kept, or decided and not published.
  const VersionRecord& RecordOf(Version version) const { return state_.versions.RecordOf(version); }

  /// The number of mini-batches done in closed rounds, on the shard that hands them out; else 0.
  uint64_t batches_of_rounds() const {
    return state_.open.work.has_value() ? state_.open.work->batches_done() : 0;
  }

  /// Returns the newest gradient that this incarnation has pushed.
  MemberRecord::Newest NewestOf(WorkerId worker, Incarnation incarnation) const;
  double current_learning_rate() const { return rules_.RateAt(examples_applied()); }

  /// The current learning rate, multiplied by the mean factor that staleness compensation has
  /// lately applied to gradients.
  double effective_learning_rate() const { return current_learning_rate() * lag().window_scale(); }

  /// The number of pulls that are served and not done.
  uint32_t pulls_under_way() const {
    return members().pulls_under_way() + static_cast<uint32_t>(state_.reader_pulls.size());
  }

  /// The number of calls that wait.
  size_t waiting() const { return state_.waiting.size(); }

  /// The number of pulls among the waiting calls: those of one reader, or all.
  size_t WaitingPulls(const Reader& reader) const { return state_.waiting.Pulls(reader); }
  size_t WaitingPulls() const { return state_.waiting.Pulls(); }

  /// Returns whether a reader who is not a member waits for nothing but the end of another's pull.
  bool ReadersWaitForPlace() const { return PullJudge(rules_, state_).ReadersWaitForPlace(); }
  uint64_t bytes_queued() const { return state_.intake.bytes_queued(); }
  uint64_t bytes_queued_max() const { return judge().bytes_queued_max(); }
  uint32_t round_size() const;

  /// Returns which members, or how many gradients, the open round waits for, as the policy says.
  NamedLack Lacks() const { return judge().ask().NamesLacked(); }

  /// Ends the process if an invariant does not hold; for tests.
  void CheckInvariants() const;

  /// The versions whose weights may be needed to compensate a gradient on its way, by age: one for
  /// each slot, or up to kBasesOfSlotMax while nothing of the slot's gradient has come. The shell
  /// keeps these, beginning with the answer that carries them.
  std::vector<Version> BasesKept() const { return members().VersionsGiven(); }
  bool KeepsBase(Version version) const { return members().IsGiven(version); }

  /// Returns the versions that have ceased to be among BasesKept since the last call, or since the
  /// state was restored.
  std::set<Version> TakeBasesReleased() { return state_.members.TakeReleased(); }

 private:
  PushJudge judge() const { return {rules_, state_}; }
  RoundProgress progress() { return {rules_, state_}; }
  CallAnswering answering() { return {rules_, state_}; }

  /// Returns whether the payload of a push is wanted.
  PushAdmission JudgePush(const PushHeader& header);
  PushAdmission JudgeComposite(const PushHeader& header) const;

  /// Takes the step from a stage to the next.
  void EnterNextStage();

  /// Finds anew whom the open round waits for.
  void MakeAwaited();

  /// Has the state saved if that is due, and once the shard has drained. Each event that may close
  /// a round or drain the shard ends with it.
  void SaveIfDue(ShardOutput& output);

  /// Notes that the payload of an admitted push is not on its way any more.
  void NoteArrival(const PushHeader& header);

  /// Returns whether the identity is newer than any member known here and the coordinator does not
  /// know it either.
  bool IsMadeUp(const Identity& identity);

  ShardRules rules_;
  ShardState state_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CORE_SHARD_SHARD_MACHINE_H_
