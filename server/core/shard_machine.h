#ifndef SLIPSTREAM_SERVER_CORE_SHARD_MACHINE_H_
#define SLIPSTREAM_SERVER_CORE_SHARD_MACHINE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/base/limits.h"
#include "common/policy/learning_rate.h"
#include "common/policy/policy.h"
#include "common/policy/staleness_compensation.h"
#include "common/policy/staleness_guard.h"
#include "common/protocol/shard_messages.h"
#include "common/protocol/view.h"
#include "common/run/policy_rows.h"
#include "common/run/run_spec.h"
#include "server/core/coordinator_orders.h"
#include "server/core/push_facts.h"
#include "server/core/run_stages.h"
#include "server/core/shard_machine_options.h"
#include "server/core/shard_output.h"
#include "server/core/shard_return.h"
#include "server/core/shard_state.h"

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

  static Reader ReaderOf(const PullRequest& request);

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
    return life() > Life{} || state_.initial_weights.has_granted();
  }

  /// Whether the shard returns to a checkpoint without the others.
  bool goes_alone() const { return !works_in_rounds(); }

  /// Returns true once no further update can come and the last one is published.
  bool is_drained() const;
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
  const StalenessGuardSpec& guard() const { return guard_.spec(); }
  Life life() const { return state_.versions.life(); }

  /// The version with which the shard began its life.
  Version life_begin() const { return state_.versions.life_begin(); }

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
  double current_learning_rate() const;

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
  bool ReadersWaitForPlace() const;
  uint64_t bytes_queued() const { return state_.intake.bytes_queued(); }
  uint64_t bytes_queued_max() const;
  uint32_t round_size() const;

  /// Returns which members, or how many gradients, the open round waits for, as the policy says.
  Lack Lacks() const;

  /// Ends the process if an invariant does not hold; for tests.
  void CheckInvariants() const;

  /// The versions whose weights may be needed to compensate a gradient on its way, by age: one for
  /// each slot, or up to kBasesOfSlotMax while nothing of the slot's gradient has come. The shell
  /// keeps these, beginning with the answer that carries them.
  std::vector<Version> BasesKept() const { return members().VersionsGiven(); }

 private:
  std::optional<PushReply> RefuseByHeader(const PushHeader& header) const;
  std::optional<PushReply> RefuseByLife(const PushHeader& header) const;

  /// Returns the answer that this push got in an earlier life, if it is part of the weights and the
  /// answer is kept; else nullptr.
  const MemberRecord::Answer* FormerAnswer(const PushHeader& header) const;

  /// Return whether the push is the member's next one, and, once it is answered, its newest.
  bool IsNext(const PushHeader& header) const;
  bool IsNewest(const PushHeader& header) const;
  std::optional<PushReply> RefuseForMemory(const PushHeader& header) const;

  /// Names an admitted push, whose payload is on its way.
  void NoteAdmitted(const PushHeader& header, PushAdmission& admission);

  /// Notes that the payload of an admitted push is not on its way any more.
  void NoteArrival(const PushHeader& header);

  /// Returns whether the queued payloads may have to wait for a push of this member.
  bool IsAwaited(WorkerId worker) const;
  bool IsOfMember(const PushHeader& header) const;
  std::optional<PushReply> RefuseBySequence(const PushHeader& header) const;
  std::optional<PushReply> RefuseByPayload(const PushFacts& facts) const;
  std::optional<PushReply> RefuseTooStale(const PushHeader& header) const;
  PushReply Refusal(PushOutcome outcome, std::string message) const;

  /// Notes in a reply of which life it is, and what survives the end of the server.
  void Sign(PushReply& reply) const;
  PushReply Counted(PushReply refusal);
  std::optional<PullRefusal> RefusePull(const PullRequest& request) const;
  std::optional<PullRefusal> RefuseIdentity(const PullRequest& request) const;

  /// Returns the meaning that a pull has in the shard's life.
  PullRequest InThisLife(PullRequest request) const;

  /// Returns whether the state of the model that was asked for will not come (again) at this shard.
  bool IsGone(const Stamp& stamp) const;

  /// Returns the version that a call is answered with, if it is answered now.
  Version VersionFor(const PendingCall& call) const;

  /// Returns the version before the newest one if this worker does the last round again, because
  /// the gradient there is of a worker before it in its place, and other shards may lack that.
  std::optional<Version> VersionToRepeat(WorkerId worker, Incarnation incarnation) const;

  /// Returns the stamp that a push gives to the version made of it, if it gives one, and the stamp
  /// of the version that the open round makes.
  static std::optional<Stamp> StampOf(const PushHeader& header);
  std::optional<Stamp> StampOfRound() const;

  /// Returns the version that the push counts as computed from: that of its header, but whole
  /// weights are as new as can be.
  Version BaseOf(const PushHeader& header) const {
    return header.kind == PushKind::kValues ? decided() : header.base;
  }

  /// The facts that the policy is given: about the members, if it waits for any, and about the
  /// shard.
  using Members = absl::InlinedVector<MemberFacts, 8>;
  MemberFacts FactsOf(WorkerId worker, const MemberRecord& member) const;
  Members MembersNow() const;
  ShardFacts FactsWith(const Members& members) const;

  /// Asks the policy about a member's gradient; kTooStale also if it cannot be compensated.
  Admission Admit(const PushHeader& header) const;

  /// Returns whether the push of which this is a late repetition was refused, if it came in time.
  bool StaysTooStale(const PushHeader& header) const;
  /// Returns whether compensation would need weights that are not kept.
  bool IsBaseGone(const PushHeader& header) const;

  /// Returns what this slot of the worker has to wait for before its next gradient.
  PullCondition WaitsFor(WorkerId worker, uint32_t slot, bool after_push) const;

  /// The decision about a push, and how its call goes on.
  struct Decision {
    PushReply reply;
    bool took_effect = true;

    /// The version that the answer waits for or brings. If it is empty, `reply` goes out at once
    /// and alone.
    std::optional<Version> answer_version;
  };
  Decision Decide(const PushFacts& facts, ShardOutput& output);
  Decision Refused(PushReply refusal);
  Decision AnswerAgain(const PushFacts& facts, const PushReply& first);
  Decision DropLate(const PushFacts& facts, std::string message);
  /// Does what OnPushHeader and Decide do, for a push that has parts.
  PushAdmission OnCompositeHeader(const PushHeader& header);
  Decision DecideComposite(const PushFacts& facts, ShardOutput& output);
  std::optional<PushReply> RefuseComposite(const PushHeader& header) const;
  /// Returns why the parts cannot count as one push; empty if they can.
  std::string WhyNotCombined(const PushHeader& header) const;
  /// Returns the first answer to a composite that comes again as it was; null if it does not.
  const PushReply* FirstAnswerTo(const PushHeader& composite) const;

  /// Takes a push of one worker, or of several, into the open round.
  Decision JoinRound(const PushFacts& facts, ShardOutput& output);
  Decision GiveUpPull(const PushFacts& facts, ShardOutput& output);
  /// Return the version that answers an exchange without an update: to one worker, or to several.
  Version AnswerVersion(const PushHeader& header) const;
  std::optional<Version> AnswerVersionOfAll(const PushHeader& header) const;
  void AnswerPush(CallId call, const PushHeader& header, const Decision& decision,
                  ShardOutput& output);
  /// Notes in the call that answers a push whether this worker goes on with the answer.
  void ExpectMore(const PushHeader& push, uint32_t part, PendingCall& call);

  /// Adds a push with values to the open round.
  void Contribute(const PushFacts& facts);
  void NoteBatch(const PushHeader& header);
  void NotePace(const PushHeader& header);

  const std::vector<RunStage>& stages() const { return state_.run.StagesOr(options_.stages); }

  /// Returns the first mini-batch beyond the stage.
  uint64_t EndOfStage(uint32_t stage) const {
    return stages()[stage].BatchesEnd(state_.run.plan->batches_per_epoch,
                                      state_.run.plan->batches_total);
  }

  /// Makes what depends on the stages, on which of them it is and, if there is one, on the plan.
  void AdoptStage();

  /// Takes the step from a stage to the next.
  void EnterNextStage();

  /// Makes the plan of the mini-batches that this shard names in the stage, if it names any.
  void MakeWork();

  /// Returns whether no further gradient can count.
  bool WorkIsDone() const;

  /// Folds what can be folded and closes the round if it is due.
  void Advance(ShardOutput& output);
  void CloseRound(ShardOutput& output);

  /// Has the state saved if that is due, and once the shard has drained. Each event that may close
  /// a round or drain the shard ends with it.
  void SaveIfDue(ShardOutput& output);
  bool IsExcuse(const PushHeader& header) const;
  bool IsOfEarlierStage(const PushHeader& header) const {
    return BaseOf(header) < state_.run.stage_begin;
  }

  /// Returns whether the identity is newer than any member known here and the coordinator does not
  /// know it either.
  bool IsMadeUp(const Identity& identity);

  uint64_t StalenessOf(const PushHeader& header) const;

  /// Returns the factor by which staleness compensation and guard multiply this gradient if it
  /// joins the open round.
  double ScaleOf(const PushHeader& header) const;

  /// Returns the update that a push will cause by itself if nothing else happens before it is
  /// complete; nothing if it will cause none, or one in which other pushes take part.
  std::optional<Forecast> ForecastUpdate(const PushHeader& header) const;

  /// Returns the forecast that the update and folds of `output` fulfil, if the update is made of
  /// one gradient alone.
  static std::optional<Forecast> AsForecast(const ShardOutput& output);

  /// Excuses a worker that waits for a later version than the open round starts from, because it
  /// has come that far on other shards. If the round lacks only this worker, nobody else would ever
  /// make that version.
  void ExcuseFromOpenRound(WorkerId worker, ShardOutput& output);

  /// Notes that from this version on the member owes rounds a gradient or an excuse, unless it did
  /// already.
  void OweFrom(WorkerId worker, Version version);

  /// Notes that gradients computed from `base`, the version of the call's answer, will come.
  void NoteTrainers(const PendingCall& call, Version base);

  /// Answers the call if its condition is met; else the call waits.
  void Answer(PendingCall call, ShardOutput& output);
  ShardAnswer Served(PendingCall call);

  /// Returns what the answer says to this worker, and adds the worker to those that train on it.
  PartAnswer ServeTrainer(const PendingCall::Trainer& trainer, ShardAnswer& answer);
  bool CanServe(const PendingCall& call) const;

  /// Notes that the members, their clocks, or which of them are at work may have changed.
  void OnPaceChanged();

  /// Notes that the worker has work at hand and names its clock.
  void EnterPace(WorkerId worker, WorkerClock named);
  void BeginPull(const PendingCall& call);

  /// Answers the call if that can be done now. Returns false if it has to wait.
  bool TryAnswer(PendingCall& call, ShardOutput& output);
  std::optional<RoundWork> WorkFor(const PendingCall::Trainer& trainer, Version version);
  void ServeWaiting(ShardOutput& output);
  std::vector<WorkerId> Owing() const;

  /// Whether gradients on their way are noted by slots, because rounds may wait for them.
  bool tracks_bases() const { return guard_.blocks() && !traits_.one_per_member; }
  bool uses_base_weights() const { return scaling_.uses_base_weights; }
  bool works_in_rounds() const { return traits_.work == PolicyTraits::Work::kRounds; }
  Round NewRound() const {
    return {traits_.order, options_.sums_pushes ? PolicyTraits::Weighing::kSum : traits_.weighing};
  }
  bool is_first() const { return options_.shard == ShardId{0}; }

  // Constant after construction.
  const Options options_;
  const StalenessGuard guard_;
  const RuleRow& rule_;
  const ScalingRow& scaling_;

  // Derived from the stages and from which of them it is; the learning rate, also from the plan.
  RunStage stage_;
  PolicyTraits traits_;

  // Set if some policy of the run waits for members. An excuse, or its repetition, may come when
  // the stage that it was made in has ended.
  bool takes_excuses_ = false;
  std::unique_ptr<const Policy> policy_;
  std::unique_ptr<const StalenessCompensation> compensation_;
  std::optional<LearningRate> learning_rate_;

  ShardState state_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CORE_SHARD_MACHINE_H_
