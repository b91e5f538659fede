#ifndef SLIPSTREAM_SERVER_CORE_SHARD_MACHINE_H_
#define SLIPSTREAM_SERVER_CORE_SHARD_MACHINE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/policy/learning_rate.h"
#include "common/policy/policy.h"
#include "common/policy/staleness_compensation.h"
#include "common/policy/staleness_guard.h"
#include "common/protocol/shard_messages.h"
#include "common/protocol/view.h"
#include "common/run/policy_rows.h"
#include "common/run/run_spec.h"
#include "server/core/coordinator_orders.h"
#include "server/core/shard_output.h"
#include "server/core/shard_state.h"

namespace slipstream {

/// Decides everything about one shard: who gives it its first weights, which pushes count, when a
/// round closes, which version answers which call, and what is drafted before that is known. It
/// holds no numbers of the model; the shell runs the kernels that the output names, in their order,
/// without a lock, and reports each published version.
///
/// Calls come in under names of the shell's. Each gets one answer, in the output of the event that
/// brought it or of a later one, unless OnCancelled comes first; then its name is free again.
///
/// Two clocks: `decided` is the version of the newest update ordered, `published` of the newest one
/// finished. Staleness counts decided versions, answers wait for publication.
///
/// Invariants, beside those of ShardState:
///  - a push of an identity and sequence joins at most one round, once;
///  - with a guard that rejects, blocks or drops, no gradient beyond its bound joins a round;
///  - a refused push changes nothing but the counters of refusals, and one that is too old its
///    sender's clock, where others wait for that;
///  - every folded push belongs to the round of the update that follows.
///
/// Not thread-safe: one owner, which serialises calls.
class ShardMachine {
 public:
  struct Options {
    /// Shard 0 is the first of a run. Where work comes in rounds it names the mini-batches, and so
    /// knows when the run ends; the others learn the last version from the coordinator. Under a
    /// guard that blocks, it alone lets workers wait: two that waited at two shards, each for the
    /// other's gradient, would wait for ever.
    ShardId shard{};
    ConsistencySpec consistency;
    OptimizerSpec optimizer;

    /// Workers push values of this kind, and one push stands for so many mini-batches.
    PushKind pushes = PushKind::kGradient;
    uint64_t quantum = 1;

    /// Examples of one mini-batch at most.
    uint32_t batch_size = 65'536;
    uint32_t epochs = 1;

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

  static Reader ReaderOf(const PullRequest& request);

  explicit ShardMachine(const Options& options);

  const ShardState& state() const { return state_; }

  /// Goes on from a state of a machine with the same options.
  void Restore(ShardState state);

  // What the coordinator says.

  /// Takes orders that are newer than those before; others have no effect. REQUIRES: if they are
  /// the first to name a model, the shell has room for as many values as ValuesOrdered says.
  ShardOutput OnOrders(const ServerOrders& orders);

  /// The shell asks the coordinator what is new; and has its answer, with what orders came of it.
  void OnCoordinatorAsked() { state_.unknown_members.OnAsked(); }
  void OnCoordinatorAnswered() { state_.unknown_members.OnAnswered(); }

  /// The values that the shard is to make room for, of the first orders that name a model; else
  /// nothing.
  std::optional<uint64_t> ValuesOrdered(const ServerOrders& orders) const;

  // The parts of orders.

  /// REQUIRES: no plan was set before.
  void SetPlan(const ShardPlan& plan);
  ShardOutput OnView(const View& view);

  /// `drain_version`: where work comes in rounds, of kDraining, the version that ends the run.
  ShardOutput OnPhase(Phase phase, Version drain_version);

  /// The open round is the last one with work, on the shard that hands it out; without effect
  /// elsewhere.
  ShardOutput OnWorkEnds();

  // What the client says that brings the initial weights.

  /// Whether they are taken from this client, for now.
  absl::Status CheckInitializer(const InitializeHeader& header) const;

  /// All of them have come. True if the shell is to put them in place, and then to say
  /// OnInitialized; false if they have come before. Fails as CheckInitializer does: the grant may
  /// have gone to another client meanwhile.
  absl::StatusOr<bool> OnInitialWeights(const InitializeHeader& header);

  // What workers and readers say.

  ShardOutput OnPull(CallId call, const PullRequest& request);

  /// Whether the payload behind this header is wanted. If it is, its bytes are counted as queued,
  /// and exactly one of OnPush and OnPushAbandoned has to follow.
  PushAdmission OnPushHeader(const PushHeader& header);

  /// What is known of an admitted push once its payload has come.
  struct PushFacts {
    PushId push{};
    PushHeader header;
    uint64_t values_received = 0;
    bool is_finite = true;
    uint64_t checksum = 0;
  };
  ShardOutput OnPush(CallId call, const PushFacts& facts);

  /// The rest of an admitted push will not come: its bytes are free again.
  void OnPushAbandoned(PushId push, const PushHeader& header);

  /// The draft, if it is of this push, was not begun, or is no more. Another may be begun.
  void OnDraftEnded(PushId push);

  /// The client behind the call is gone. True if the call was waiting; it gets no answer then.
  bool OnCancelled(CallId call);

  // What the shell has done.

  /// The initial weights of this grant are in place as version 0. REQUIRES: a plan.
  ShardOutput OnInitialized(uint64_t grant);
  ShardOutput OnPublished(Version version);

  /// A pull that was served has sent everything, or its call is gone: its version is let go.
  ShardOutput OnPullDone(const Reader& reader);

  /// Payload bytes of pushes that were kept are free again.
  void ReleaseBytes(uint64_t bytes);

  // What status and log show.

  bool has_plan() const { return state_.plan.has_value(); }
  bool is_initialized() const { return state_.is_initialized; }

  /// The weights of the newest grant are in place.
  bool has_granted_weights() const {
    return state_.grant != 0 && state_.initialized_grant == state_.grant;
  }

  /// No further update can come, and the last one is published.
  bool is_drained() const;
  Version decided() const { return state_.decided; }
  Version published() const { return state_.published; }
  Phase phase() const { return state_.phase; }
  const View& view() const { return state_.members.view(); }
  const LagTracker& lag() const { return state_.lag; }
  const Round& round() const { return state_.round; }
  const MemberTable& members() const { return state_.members; }
  const std::map<PushOutcome, uint64_t>& outcomes() const { return state_.outcomes; }
  const GuardCounts& guard_counts() const { return state_.guard_counts; }
  const StalenessGuardSpec& guard() const { return guard_.spec(); }
  uint64_t examples_applied() const { return state_.examples_applied; }

  /// Mini-batches done in closed rounds, on the shard that hands them out; else 0.
  uint64_t batches_of_rounds() const {
    return state_.work.has_value() ? state_.work->batches_done() : 0;
  }

  /// The newest gradient that this incarnation has pushed.
  MemberRecord::Newest NewestOf(WorkerId worker, Incarnation incarnation) const;
  double current_learning_rate() const;

  /// The same times what staleness compensation has lately multiplied gradients by, on average.
  double effective_learning_rate() const { return current_learning_rate() * lag().window_scale(); }

  /// Served and not done.
  uint32_t pulls_under_way() const { return members().pulls_under_way() + state_.pulls_of_others; }

  /// Calls that wait.
  size_t waiting() const { return state_.waiting.size(); }

  /// Of these, the pulls, by whom: of one reader, or of all.
  size_t WaitingPulls(const Reader& reader) const;
  size_t WaitingPulls() const;

  /// Readers who are no members wait for nothing but that one of them is done.
  bool ReadersWaitForPlace() const;
  uint64_t bytes_queued() const { return state_.bytes_queued; }
  uint64_t bytes_queued_max() const;
  uint32_t round_size() const;

  /// Whom or what the open round waits for, as the policy says.
  Lack Lacks() const;

  /// Ends the process if an invariant does not hold; for tests.
  void CheckInvariants() const;

  /// The versions whose weights a gradient on its way may be compensated by, by age: one for each
  /// slot, or up to kBasesOfSlotMax while nothing of its gradient has come. The shell keeps these,
  /// from the answer that carries them on.
  std::vector<Version> BasesKept() const { return members().VersionsGiven(); }

 private:
  std::optional<PushReply> RefuseByHeader(const PushHeader& header) const;
  std::optional<PushReply> RefuseByLife(const PushHeader& header) const;
  std::optional<PushReply> RefuseForRoom(const PushHeader& header) const;
  void NoteArrival(const PushHeader& header);

  /// Whether what is queued may have to wait for a push of this member.
  bool IsAwaited(WorkerId worker) const;
  bool IsOfMember(const PushHeader& header) const;
  std::optional<PushReply> RefuseBySequence(const PushHeader& header) const;
  std::optional<PushReply> RefuseByPayload(const PushFacts& facts) const;
  std::optional<PushReply> RefuseTooStale(const PushHeader& header) const;
  PushReply Refusal(PushOutcome outcome, std::string message) const;
  PushReply Counted(PushReply refusal);
  std::optional<PullRefusal> RefusePull(const PullRequest& request) const;
  std::optional<PullRefusal> RefuseIdentity(const PullRequest& request) const;

  /// What the policy may know of the members, if it waits for any; and of the shard, with these.
  using Members = absl::InlinedVector<MemberFacts, 8>;
  MemberFacts FactsOf(WorkerId worker, const MemberRecord& member) const;
  Members MembersNow() const;
  ShardFacts FactsWith(const Members& members) const;

  /// What the policy says to a gradient of a member, and whether it can be compensated.
  Admission Admit(const PushHeader& header) const;

  /// Compensation would need weights that are not kept.
  bool IsBaseGone(const PushHeader& header) const;

  /// What this slot of the worker has to wait for before its next gradient.
  PullCondition WaitsFor(WorkerId worker, uint32_t slot, bool after_push) const;

  /// What becomes of a push, and how it goes on.
  struct Decision {
    PushReply reply;
    bool took_effect = true;

    /// Of the answer that waits for a version, or brings weights; nothing: `reply` goes out at once
    /// and alone.
    std::optional<Version> answer_version;
  };
  Decision Decide(const PushFacts& facts, ShardOutput& output);
  Decision Refused(PushReply refusal);
  Decision AnswerAgain(const PushFacts& facts, const PushReply& first);
  Decision DropLate(const PushFacts& facts, std::string message);
  Decision JoinRound(const PushFacts& facts, ShardOutput& output);
  Decision GiveUpPull(const PushFacts& facts, ShardOutput& output);

  /// The version that an exchange of a push is answered with which makes no update.
  Version AnswerVersion(const PushHeader& header) const;
  void AnswerPush(CallId call, const PushHeader& header, const Decision& decision,
                  ShardOutput& output);
  void NoteBatch(const PushHeader& header);
  void NotePace(const PushHeader& header);

  void MakeLearningRate();

  /// No further gradient can count.
  bool WorkIsDone() const;

  /// Folds what can be folded and closes the round if it is due.
  void Advance(ShardOutput& output);
  void CloseRound(ShardOutput& output);
  bool IsExcuse(const PushHeader& header) const;

  /// Whether it is newer than any member known here, and the coordinator does not know it either.
  bool IsMadeUp(const Identity& identity);

  /// Returns how many examples the mini-batches of the push can have.
  uint64_t ExamplesMax(const PushHeader& header) const;
  uint64_t StalenessOf(const PushHeader& header) const;

  /// What staleness compensation and guard multiply this gradient by, if it joins the open round.
  double ScaleOf(const PushHeader& header) const;

  /// The update that a push will cause by itself if nothing else happens before it is complete;
  /// nothing if it will cause none, or one that others take part in.
  std::optional<Forecast> ForecastUpdate(const PushHeader& header) const;

  /// The forecast that an update by the folds ordered just before has fulfilled, if it is by one
  /// gradient alone.
  static std::optional<Forecast> AsForecast(const ShardOutput& output);

  /// The worker waits for a later version than the open round starts from, because it has come that
  /// far elsewhere. If it is the only one that the round lacks, nobody else would ever bring it.
  void ExcuseFromOpenRound(WorkerId worker, ShardOutput& output);

  /// From this version on the member owes rounds something, unless it did already.
  void OweFrom(WorkerId worker, Version version);

  /// A gradient of the answer will come.
  void NoteTrainer(const PendingCall& call, Version base);

  /// Answers the call, if its time has come; else it waits.
  void Answer(PendingCall call, ShardOutput& output);
  ShardAnswer Served(PendingCall call);
  bool CanServe(const PendingCall& call) const;

  /// If the slowest has come to the condition's clock, what is left of it is a version.
  void SettlePace(PullCondition& condition) const;

  /// Members, their clocks, or who of them is at work may have changed.
  void OnPaceChanged();

  /// The worker has work at hand, and names its clock.
  void EnterPace(WorkerId worker, WorkerClock named);
  void BeginPull(const Reader& reader);
  std::optional<RoundWork> WorkFor(const std::optional<WorkerId>& trainer);
  void ServeWaiting(ShardOutput& output);
  std::vector<WorkerId> Owing() const;

  /// Gradients on their way are known by their slots, since rounds may wait for them.
  bool tracks_bases() const { return guard_.blocks() && !traits_.one_per_member; }
  bool uses_base_weights() const { return scaling_.uses_base_weights; }
  bool works_in_rounds() const { return traits_.work == PolicyTraits::Work::kRounds; }
  Round NewRound() const { return Round(traits_.order, traits_.weighing); }
  bool is_first() const { return options_.shard == ShardId{0}; }

  // Constant after construction.
  const Options options_;
  const std::unique_ptr<const Policy> policy_;
  const PolicyTraits traits_;
  const StalenessGuard guard_;
  const std::unique_ptr<const StalenessCompensation> compensation_;
  const RuleRow& rule_;
  const ScalingRow& scaling_;

  ShardState state_;
  std::optional<LearningRate> learning_rate_;  // Follows from the options and the plan.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CORE_SHARD_MACHINE_H_
