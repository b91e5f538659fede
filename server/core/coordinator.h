#ifndef SLIPSTREAM_SERVER_CORE_COORDINATOR_H_
#define SLIPSTREAM_SERVER_CORE_COORDINATOR_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/base/log_line.h"
#include "common/protocol/shard_messages.h"
#include "common/protocol/view.h"
#include "common/run/run_spec.h"
#include "server/core/coordinator_aggregators.h"
#include "server/core/coordinator_evaluations.h"
#include "server/core/coordinator_initialization.h"
#include "server/core/coordinator_membership.h"
#include "server/core/coordinator_orders.h"
#include "server/core/coordinator_readers.h"
#include "server/core/coordinator_returns.h"
#include "server/core/coordinator_saves.h"
#include "server/core/coordinator_servers.h"
#include "server/core/coordinator_speeds.h"
#include "server/core/coordinator_work_ledger.h"
#include "server/core/run_stages.h"
#include "server/core/stop_conditions.h"

namespace slipstream {

/// The control plane of one run. It takes the reports of servers and workers and the passing of
/// time, and moves the run through its phases.
///
/// It is a pure state machine. It keeps no waiting calls: an answer of kWait means "ask again when
/// changes() has risen", so a cancelled call leaves nothing behind.
///
/// Codes of refusals: UNAVAILABLE, ask again later; FAILED_PRECONDITION, register again;
/// OUT_OF_RANGE, the run has finished; ABORTED, it failed; INVALID_ARGUMENT, what was sent does not
/// fit the run.
///
/// Invariants:
///  - phases only advance, but for a new stage of the run, which begins with kTraining again, and
///    for a return of all shards to a checkpoint from before the end of work, which makes the run
///    train again; kFinished and kFailed are final;
///  - the number of the orders rises with every change of them;
///  - a message from a fenced, dead or departed worker has no effect.
///
/// Not thread-safe: one owner, which serialises calls.
class Coordinator {
 public:
  /// Something that happened, for the log.
  struct Note {
    bool is_warning = false;
    LogLine line;
  };

  struct Preparation {
    enum class State : uint8_t { kWait, kGranted, kReady };
    State state = State::kWait;
    uint64_t grant = 0;
    ShardMap shard_map;
    std::string message;  // What the run waits for, for people.
  };

  struct Progress {
    uint64_t unit = 0;
    uint64_t batches_done = 0;
  };

  struct Work {
    /// kStage: the run is in `stage`, a later one than the worker's. kReturned: the shards, which
    /// return together, have begun `life`, a later one than the worker knows: rounds come again.
    enum class State : uint8_t { kWait, kUnit, kFinished, kStage, kReturned };
    State state = State::kWait;
    Life life{};
    WorkLedger::Unit unit;
    uint32_t stage = 0;

    /// The policy of `stage`, and the newest stage up to it that did not begin at once: gradients
    /// of weights from that one on count.
    PolicyKind policy = kDefaultPolicy;
    uint32_t since_stage = 0;
  };

  /// When a change takes effect: at once, or once an epoch is done.
  struct ChangeEffect {
    std::optional<uint32_t> after_epoch;
  };

  /// The servers, workers and aggregators that the run cannot go on without.
  struct MissingMembers {
    std::vector<ShardId> shards;

    /// Empty if a shard or an aggregator is missing, or if any worker would do. While the run
    /// trains, these are gone, and others are awaited in their places.
    std::vector<WorkerId> workers;

    /// The aggregators that have not reported, or do not know the members yet with which training
    /// begins. Empty if a shard or a worker is missing.
    std::vector<AggregatorId> aggregators;

    /// The number of workers that are lacking while the run trains or measures, if any would do.
    uint32_t more_workers = 0;

    /// For how long workers have been lacking while the run trains or measures.
    absl::Duration gone_for;

    /// How long it takes until the run fails if they do not come.
    absl::Duration fails_in;
  };

  /// The run of which Save wrote the state down.
  struct SavedRun {
    uint64_t run = 0;
    Phase phase = Phase::kWaitingForServers;
    bool is_over = false;  // It has failed, or has finished and its servers may exit.
  };

  /// The most bytes by which a worker can be reached.
  static constexpr size_t kContactBytesMax = size_t{64} << 10;

  /// The longest silence of a server that does not count as missing. Servers report several times a
  /// second.
  static constexpr absl::Duration kServerSilenceMax = absl::Seconds(2);

  /// `run` is the id of this run. The start_timeout counts from `start`.
  Coordinator(uint64_t run, const RunSpec& spec, absl::Time start);

  /// Returns the state of the run as bytes, from which Restore goes on.
  std::string Save() const;

  /// Goes on from the state that Save has written for the same run and settings. Leases and
  /// timeouts begin anew. `accepts_rollback`: also if it is older than what servers know.
  /// FAILED_PRECONDITION if the bytes are of another run; DATA_LOSS if they are damaged: the object
  /// is of no use then. REQUIRES: nothing else was called before.
  absl::Status Restore(std::string_view bytes, absl::Time now, bool accepts_rollback = false);

  /// Returns which run the bytes are of; DATA_LOSS if they cannot be read. Restore checks the rest.
  static absl::StatusOr<SavedRun> PeekAt(std::string_view bytes);

  /// A number that rises whenever there is something that a member may learn from an answer and
  /// that has to survive this process: it is to be saved before answers leave.
  uint64_t journal_changes() const { return journal_changes_; }

  /// Takes the report of a server. If a process takes the place of another one that is gone before
  /// training, initialisation starts over. Later, where the shard keeps a log, the run waits until
  /// it is where it was. Else the shard returns to its newest checkpoint, or all shards to a common
  /// one where they are in step. The run fails if there is no checkpoint.
  absl::Status OnServer(const ServerReport& report, absl::Time now);

  /// Notes for the log, once for each process and reason, that a server was refused: the server's
  /// own log may not be at hand.
  void NoteRefusal(const ServerReport& report, const absl::Status& reason);

  /// Takes the report of an aggregator. Training begins once all have reported. The run goes on
  /// without one that falls silent later.
  absl::StatusOr<Aggregators::Arrival> OnAggregator(const AggregatorReport& report, absl::Time now);
  void NoteRefusal(const AggregatorReport& report, const absl::Status& reason);

  /// Returns the address of the shard's server; empty until that has reported. REQUIRES: there is
  /// such a shard.
  std::string UpstreamOf(ShardId shard) const;

  /// The calls of workers. Each one but OnMeasured and OnLeave renews the lease of a live worker.
  absl::StatusOr<Identity> OnRegister(const Applicant& applicant, absl::Time now);

  /// `layout`: null from a worker that has named it before; `data` is then ignored.
  absl::StatusOr<Preparation> OnPrepareModel(const Identity& worker,
                                             const std::optional<TensorLayout>& layout,
                                             const Initialization::Data& data, absl::Time now);

  /// Notes whether the worker can save weights. If none can, though some were told where, a run
  /// that has just begun fails.
  absl::Status OnSaving(const Identity& worker, Saving saving, absl::Time now);
  absl::Status OnFinishInitialization(const Identity& worker, uint64_t grant, absl::Time now);
  absl::Status OnHeartbeat(const Identity& worker, std::span<const Progress> progress,
                           absl::Time now);

  /// Notes by which bytes other workers reach this one, where workers add up their gradients
  /// themselves; empty if it does not say. FAILED_PRECONDITION in other runs.
  absl::Status OnMeet(const Identity& worker, const std::string& contact, absl::Time now);

  /// Notes that this incarnation pushes nothing more. The unfinished part of its units is free
  /// again.
  absl::Status OnDonePushing(const Identity& worker, absl::Time now);

  /// Notes how many examples the worker has measured for an evaluation. If the evaluation was
  /// ordered from this worker and the number has grown, its time limit starts again.
  void OnMeasured(const Identity& worker, uint64_t evaluation, uint64_t examples, absl::Time now);

  /// Notes the speed that a live worker reports, in steps per second, if the run's steps follow
  /// speeds. INVALID_ARGUMENT if it is none.
  absl::Status OnSpeed(const Identity& worker, double steps_per_second);

  absl::Status OnReport(const Identity& worker, uint64_t evaluation, Evaluation result,
                        const std::string& weights_sha256, absl::Time now);

  /// Ends the worker's membership. `ends_run`: no other worker could go on either, so the run fails
  /// with this failure. `progress` reports what was pushed since the last heartbeat.
  absl::Status OnLeave(const Identity& worker, const std::string& failure, absl::Time now,
                       bool ends_run = false, std::span<const Progress> progress = {});

  /// Ends training now, as if its time were over, for a reason from outside. The weights of that
  /// moment become the final ones. FAILED_PRECONDITION before training has begun; no effect once
  /// work has ended; OUT_OF_RANGE once the run has finished, ABORTED if it has failed.
  absl::Status OnEndTraining(EndReason reason, absl::Time now);

  /// Changes policy or learning rate for the rest of the run: at once, or at the end of the present
  /// epoch where work comes in rounds. Has no effect if the run has both already.
  /// FAILED_PRECONDITION if the change cannot be made at this point of the run, or at no point of
  /// it; OUT_OF_RANGE once the run has finished, ABORTED if it has failed; RESOURCE_EXHAUSTED if it
  /// was changed too often. REQUIRES: `change` is of the run's settings, and fits their other keys.
  absl::StatusOr<ChangeEffect> OnChange(const RunChange& change, absl::Time now);

  /// Has all shards save their state as soon as they can. Returns the number by which AskSave tells
  /// when they have. `number`: 0, or one that was returned before, which is then waited for again.
  /// FAILED_PRECONDITION if the run makes no checkpoints, or does not train; OUT_OF_RANGE once it
  /// has finished, ABORTED if it has failed.
  absl::StatusOr<uint64_t> OnSaveCheckpoint(uint64_t number, absl::Time now);

  /// Takes the report of a reader, who need not be a member. Returns its number.
  absl::StatusOr<uint64_t> OnReader(const ReaderReport& report, absl::Time now);

  /// Carries out what depends on time alone: leases and timeouts end.
  void Tick(absl::Time now);

  /// Notes that time has passed, before an event between two ticks. A gap of more than half a lease
  /// counts against nobody, as this process was stopped: leases and timeouts are extended by it. So
  /// does all time with `held`, while a failed write holds back the answers that others wait for.
  void Observe(absl::Time now);
  void HoldAnswers(bool held) { answers_are_held_ = held; }
  bool AwaitsServers() const { return servers_.AnyUnheard() && !IsOver(); }  // Once restored.

  /// Return the answers to a waiting PrepareModel and GetWork. They renew no lease. `stage` is the
  /// stage that the worker is in, and `newest_unit` the newest unit that it knows of; a newer one
  /// that it never got is given again. `life` is the newest life of a shard that it knows.
  absl::StatusOr<Preparation> AskModel(const Identity& worker) const;
  absl::StatusOr<Work> AskWork(const Identity& worker, uint32_t stage,
                               std::optional<uint64_t> newest_unit, Life life = {});

  /// Returns what the worker `other` has told OnMeet; empty if it has not yet. Renews no lease.
  absl::StatusOr<std::string> AskContact(const Identity& worker, WorkerId other) const;

  /// Returns how far the shards are with the order of OnSaveCheckpoint. Its failures, too.
  absl::StatusOr<SaveProgress> AskSave(uint64_t number) const;

  /// A number that rises whenever a waiting call may have an answer.
  uint64_t changes() const { return changes_; }
  const ServerOrders& orders() const { return orders_; }

  /// Returns the order of the open evaluation if it was given to this worker, else nothing.
  std::optional<Evaluations::Order> EvaluationFor(WorkerId worker) const;

  /// Returns the number of mini-batches of the worker's next pushes, if the run's steps follow
  /// speeds and the worker's is known; else nothing.
  std::optional<uint64_t> StepsFor(WorkerId worker) const;

  /// Returns true once every server and aggregator that is not silent knows that it may exit.
  bool ServersMayStop(absl::Time now) const;

  /// Returns true once no more work is handed out. Workers leave the rest of their units undone.
  bool WorkEnds() const { return end_reason_.has_value(); }

  /// DATA_LOSS once a server has shown that the restored state is an older copy.
  const absl::Status& rollback() const { return rollback_; }
  /// Returns the notes made since the last call.
  std::vector<Note> TakeNotes();

  // For status.
  Phase phase() const { return phase_; }

  /// The run's stages, and the place of the one that it is in.
  const std::vector<RunStage>& stages() const { return stages_; }
  uint32_t stage() const { return stage_; }
  const RunStage& present() const { return stages_[stage_]; }
  const std::string& failure() const { return failure_; }

  /// Why training ended. Empty while it goes on, and if the run failed before its end.
  std::optional<EndReason> end_reason() const { return end_reason_; }
  const Membership& membership() const { return membership_; }
  const Servers& servers() const { return servers_; }
  const Returns& returns() const { return returns_; }
  const Aggregators& aggregators() const { return aggregators_; }
  const Evaluations& evaluations() const { return evaluations_; }
  const Readers& readers() const { return readers_; }
  uint64_t batches_total() const;
  uint64_t batches_done() const;
  uint32_t epochs_done() const;

  /// Returns whether the worker has mini-batches to push. Where rounds hand them out (hardsync),
  /// every worker has some while any are left.
  bool HasWork(WorkerId worker) const;

  /// Returns the members that the run waits for; nothing if none is missing or the run is over.
  std::optional<MissingMembers> Missing(absl::Time now) const;

  /// Returns the time from the beginning of training until all shards had drained or the run
  /// failed, or else until `now`.
  absl::Duration TrainingTime(absl::Time now) const;

 private:
  template <typename Archive, typename Self>
  static void Parts(Archive& archive, Self& self);

  bool IsOver() const { return phase_ == Phase::kFinished || phase_ == Phase::kFailed; }
  absl::Status RefuseIfOver() const;
  absl::StatusOr<Membership::Registration> Register(const Applicant& applicant, absl::Time now);
  absl::Status TakeProgress(const Identity& worker, std::span<const Progress> progress);
  void ExpireLeases(absl::Time now);
  void OnGone(WorkerId worker, Incarnation gone);
  void NoteArrival(const ServerReport& report, Servers::Arrival arrival, absl::Time now);

  // Shards whose servers come back. GoBackTo returns whether the run trains again.
  void TakeLife(const ServerReport& report, absl::Time now);
  void AwaitLog(const ServerReport& report, absl::Time now);
  absl::Status CheckRollback(const ServerReport& report);
  void ReturnOne(const ServerReport& report, absl::Time now);
  void ReturnAll(absl::Time now);
  void Return(const ServerReport& report, Life life, const SavedVersion& from);
  /// Fails the run, unless it has finished.
  void GiveUp(std::string reason, absl::Time now);
  bool GoBackTo(const SavedVersion& cut, absl::Time now);
  bool AnyAway() const;
  void OrderSaveIfDue(absl::Time now);
  absl::Status RefuseSave() const;

  // Each of these returns whether it changed the phase or a grant, so that more steps may follow.
  bool AdvanceOnce(absl::Time now);
  bool AdvanceServers(absl::Time now);
  bool AdvanceWorkers(absl::Time now);
  bool AdvanceInitialization(absl::Time now);
  bool AdvanceTraining(absl::Time now);
  bool AdvanceDraining(absl::Time now);

  /// Returns the first mini-batch beyond this stage.
  uint64_t StageEnd(uint32_t stage) const;
  bool IsLastStage() const { return StageEnd(stage_) == batches_total(); }
  bool works_in_rounds() const {
    return stages_[stage_].consistency.traits().work == PolicyTraits::Work::kRounds;
  }

  /// Whether shards that come back return to a version that all have saved. Shards that keep a log
  /// lose no version, and so do not return at all.
  bool returns_together() const { return works_in_rounds() && !keeps_log_; }
  void EnterStage(uint32_t stage, absl::Time now);
  absl::Status RefuseChange(const RunChange& change) const;
  void MakeLedger();
  bool WorkIsDone();
  void EndWorkIfDue(absl::Time now);
  void EndWork(EndReason reason);

  // Lost workers. LacksWorkers and AwaitReturn return why the run cannot go on, once it has waited
  // long enough. AwaitReturn waits while fewer than `least` workers are live. PlacesAwaitedSince:
  // nothing if no round waits in an empty place.
  bool KeepsPlaces() const;
  std::optional<absl::Time> PlacesAwaitedSince() const;
  std::optional<std::string> LacksWorkers(absl::Time now);
  std::optional<std::string> AwaitReturn(uint32_t least, const char* purpose, absl::Time now);
  std::optional<MissingMembers> MissingWhileTraining(absl::Time now) const;

  /// Fails the run, if possible after the shards have saved their last versions.
  bool StopTraining(std::string why, absl::Time now);
  bool FailOnceSaved(bool are_drained, absl::Time now);
  bool AdvanceEvaluation(absl::Time now);

  void Advance(absl::Time now);
  void AssignEvaluation(WorkerId worker, absl::Time now);
  void FailIfNobodySaves(absl::Time now);
  void GiveUpLateEvaluator(absl::Time now);
  void NoteSkipped(uint32_t epoch);
  void MoveTo(Phase phase, absl::Time now);
  bool Fail(std::string reason, absl::Time now);
  std::vector<WorkerId> FindMissingWorkers() const;
  std::string MissingWorkers() const;
  bool AllServersThere() const { return servers_.AllSynced() && aggregators_.AllReported(); }
  bool HasInitialWeights() const {
    return initialization_.finished() && servers_.AllInitialized(grant_orders_);
  }
  std::string LastWords() const;
  std::string LostWorker() const;
  void PublishOrders(absl::Time now);
  ModelOrders MakeModelOrders() const;
  bool ServersMayExit(absl::Time now) const;
  void AddRefusal(std::string text, uint64_t instance, std::vector<LogField> fields,
                  const absl::Status& reason);
  void AddNote(bool is_warning, std::string text, std::vector<LogField> fields = {});

  // Constant after construction.
  const uint64_t run_;
  const uint32_t workers_to_start_;
  const uint32_t batch_size_;
  const WorkLedger::Pushes pushes_;
  const StopConditions stop_conditions_;
  const absl::Duration lease_;
  const absl::Duration start_timeout_;
  const bool waits_for_lost_;  // Other workers take the places of lost ones.
  const uint32_t workers_min_;
  const bool is_measured_;  // Workers measure the weights, at least the final ones.
  const bool exits_after_;
  const bool keeps_log_;                      // As DurabilitySpec::keeps_log.
  const bool has_one_publisher_;              // The weights of several would take turns.
  const bool all_reduces_;                    // PolicyTraits::workers_make_weights.
  const std::vector<std::string> addresses_;  // The servers' addresses in the settings.

  Membership membership_;
  Servers servers_;
  Aggregators aggregators_;
  Initialization initialization_;
  Evaluations evaluations_;
  Readers readers_;
  Returns returns_;

  // Set if servers make checkpoints.
  std::optional<Saves> saves_;

  // Set from the beginning of the first stage on whose work does not come in rounds.
  std::optional<WorkLedger> ledger_;

  // Set if workers take local steps by their speed.
  std::optional<WorkerSpeeds> speeds_;

  // With all_reduces_: how workers reach each other, and the first of them that was gone while all
  // were needed.
  std::map<WorkerId, std::string> contacts_;
  std::optional<WorkerId> lost_;

  // The stages of the run, and whether a change has made others of them than the settings have.
  std::vector<RunStage> stages_;
  bool has_changed_ = false;
  uint32_t stage_ = 0;

  // Set once every server knows that the stage has begun; workers are sent to it from then on.
  // Until then there is no work, unless all stages that some server does not know of began at once.
  bool stage_is_open_ = true;
  bool holds_work_ = false;

  Phase phase_ = Phase::kWaitingForServers;
  std::string failure_;
  absl::Time phase_since_;
  absl::Time start_;
  absl::Time last_observed_;
  bool answers_are_held_ = false;
  absl::Time training_began_ = absl::InfiniteFuture();
  absl::Time trained_until_ = absl::InfiniteFuture();

  // When the open evaluation was ordered or last made progress, and how many examples it measured.
  absl::Time evaluation_heard_ = absl::InfinitePast();
  uint64_t measured_ = 0;

  // The refusals of servers that were noted, by process and reason; at most kRefusalsMax.
  std::set<std::pair<uint64_t, std::string>> refusals_;

  // Since when the run has had fewer workers than it needs. Empty while it has enough.
  std::optional<absl::Time> deserted_since_;

  // Why the run fails as soon as the shards have saved their last versions. Empty if it does not.
  std::string stopped_for_;

  // Set once the stage's last mini-batch is part of the weights, where work comes in rounds.
  bool rounds_done_ = false;

  // The version of shard 0 that holds it then.
  Version drain_version_{};

  // The version with which the stage began: the last one of the stage before, where that had rounds
  // and drained. Else empty.
  std::optional<Version> stage_begin_;

  // The number of mini-batches done in closed rounds that shard 0 has reported last. It stays while
  // shard 0 is away.
  uint64_t batches_of_rounds_ = 0;

  // Set when work ends, early or not. The orders announce only an early end.
  std::optional<EndReason> end_reason_;
  bool accepts_rollback_ = false;
  absl::Status rollback_;
  bool ends_early_ = false;

  ServerOrders orders_;

  // The numbers of the orders that announced the newest grant, the phase and the stage.
  uint64_t grant_orders_ = 0;
  uint64_t phase_orders_ = 0;
  uint64_t stage_orders_ = 0;
  uint64_t changes_ = 0;
  uint64_t journal_changes_ = 0;
  std::vector<Note> notes_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CORE_COORDINATOR_H_
