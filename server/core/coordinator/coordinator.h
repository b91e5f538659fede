#ifndef SLIPSTREAM_SERVER_CORE_COORDINATOR_COORDINATOR_H_
#define SLIPSTREAM_SERVER_CORE_COORDINATOR_COORDINATOR_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/protocol/view.h"
#include "common/settings/run_spec.h"
#include "server/core/coordinator/aggregators.h"
#include "server/core/coordinator/evaluations.h"
#include "server/core/coordinator/events.h"
#include "server/core/coordinator/initialization.h"
#include "server/core/coordinator/membership.h"
#include "server/core/coordinator/notes.h"
#include "server/core/coordinator/readers.h"
#include "server/core/coordinator/run_questions.h"
#include "server/core/coordinator/run_state.h"
#include "server/core/coordinator/run_steps.h"
#include "server/core/coordinator/run_work.h"
#include "server/core/coordinator/servers.h"
#include "server/core/orders.h"

namespace slipstream {

/// The answer to a worker that asks for work.
struct WorkAnswer {
  /// kStage: the run is in `stage`, a later one than the worker's. kReturned: the shards, which
  /// return together, have begun `generation`, a later one than the worker knows: rounds come
  /// again.
  enum class State : uint8_t { kWait, kUnit, kFinished, kStage, kReturned };
  State state = State::kWait;
  Generation generation{};
  WorkLedger::Unit unit;
  uint32_t stage = 0;

  /// The policy of `stage`, and the newest stage up to it that did not begin at once: gradients of
  /// weights from that one on count.
  PolicyKind policy = kDefaultPolicy;
  uint32_t since_stage = 0;
};

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
  /// When a change takes effect: at once, or once an epoch is done.
  struct ChangeEffect {
    std::optional<uint32_t> after_epoch;
  };

  /// `run` is the id of this run. The start_timeout counts from `start`.
  Coordinator(uint64_t run, const RunSpec& spec, absl::Time start);

  /// Returns the state of the run as bytes, from which Restore goes on.
  std::string Save() const;

  /// Goes on from the state that Save has written for the same run and settings. Leases and
  /// timeouts begin anew. `accepts_rollback`: also if it is older than what servers know.
  /// FAILED_PRECONDITION if the bytes are of another run; DATA_LOSS if they are damaged: the object
  /// is of no use then. REQUIRES: nothing else was called before.
  absl::Status Restore(std::string_view bytes, absl::Time now, bool accepts_rollback = false);

  /// A number that rises whenever there is something that a member may learn from an answer and
  /// that has to survive this process: it is to be saved before answers leave.
  uint64_t journal_changes() const { return state_.journal_changes; }

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
  std::string UpstreamOf(ShardId shard) const { return state_.servers.AddressOf(shard); }

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
  absl::Status OnHeartbeat(const Identity& worker, std::span<const UnitReport> progress,
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
                       bool ends_run = false, std::span<const UnitReport> progress = {});

  /// Ends training now, as if its time were over, for a reason from outside. The weights of that
  /// moment become the final ones. FAILED_PRECONDITION before training has begun; no effect once
  /// work has ended; OUT_OF_RANGE once the run has finished, ABORTED if it has failed.
  absl::Status OnEndTraining(EndReason reason, absl::Time now);

  /// Changes policy or learning rate for the rest of the run: at once, or at the end of the present
  /// epoch where work comes in rounds. Has no effect if the run has both already.
  /// FAILED_PRECONDITION if the change cannot be made at this point of the run, or at no point of
  /// it; OUT_OF_RANGE once the run has finished, ABORTED if it has failed; RESOURCE_EXHAUSTED if it
  /// was changed too often. `by` is who asks, for the note. REQUIRES: `change` is of the run's
  /// settings, and fits their other keys.
  absl::StatusOr<ChangeEffect> OnChange(const RunChange& change, absl::Time now,
                                        const std::string& by = "");

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
  bool AwaitsServers() const {  // Once restored.
    return state_.servers.AnyUnheard() && !state_.phase.IsOver();
  }

  /// Return the answers to a waiting PrepareModel and GetWork. They renew no lease.
  absl::StatusOr<Preparation> AskModel(const Identity& worker) const;
  absl::StatusOr<WorkAnswer> AskWork(const Identity& worker, const WorkQuestion& question);

  /// Returns what the worker `other` has told OnMeet; empty if it has not yet. Renews no lease.
  absl::StatusOr<std::string> AskContact(const Identity& worker, WorkerId other) const;

  /// Returns how far the shards are with the order of OnSaveCheckpoint. Its failures, too.
  absl::StatusOr<SaveProgress> AskSave(uint64_t number) const;

  /// A number that rises whenever a waiting call may have an answer.
  uint64_t changes() const { return state_.changes; }
  const ServerOrders& orders() const { return state_.orders; }

  /// Returns the order of the open evaluation if it was given to this worker, else nothing.
  std::optional<Evaluations::Order> EvaluationFor(WorkerId worker) const {
    const std::optional<Evaluations::Order>& open = evaluations().open();
    return open.has_value() && open->worker == worker ? open : std::nullopt;
  }

  /// Returns the number of mini-batches of the worker's next pushes, if the run's steps follow
  /// speeds and the worker's is known; else nothing.
  std::optional<uint64_t> StepsFor(WorkerId worker) const {
    return state_.speeds.has_value() ? state_.speeds->StepsOf(worker) : std::nullopt;
  }

  /// Returns true once every server and aggregator that is not silent knows that it may exit.
  bool ServersMayStop(absl::Time now) const { return questions_.ServersMayStop(now); }

  /// Returns true once no more work is handed out. Workers leave the rest of their units undone.
  bool WorkEnds() const { return state_.work.ends(); }

  /// DATA_LOSS once a server has shown that the restored state is an older copy.
  const absl::Status& rollback() const { return state_.rollback.found(); }

  /// Returns the notes made since the last call. Those of a kind become events of this time of day,
  /// which are saved with the state; journal_changes() does not count them.
  std::vector<CoordinatorNotes::Note> TakeNotes(absl::Time time_of_day = absl::UnixEpoch()) {
    return state_.TakeNotes(time_of_day);
  }

  /// Adds a note of what the shell has found; or an event that is noted nowhere else.
  void AddNote(CoordinatorNotes::Note note) { state_.notes.Add(std::move(note)); }
  void AddEvent(const CoordinatorNotes::Note& note, absl::Time time_of_day) {
    state_.events.Add(note, time_of_day);
  }

  // For status.
  Phase phase() const { return state_.phase.phase(); }

  /// The run's stages, and the place of the one that it is in.
  const std::vector<RunStage>& stages() const { return state_.stages.all(); }
  uint32_t stage() const { return state_.stages.at(); }
  const RunStage& present() const { return state_.stages.present(); }
  const std::string& failure() const { return state_.phase.failure(); }

  /// Why training ended. Empty while it goes on, and if the run failed before its end.
  std::optional<EndReason> end_reason() const { return state_.work.end_reason(); }
  const Membership& membership() const { return state_.membership; }
  const Servers& servers() const { return state_.servers; }
  const Returns& returns() const { return state_.recovery.returns(); }
  const Aggregators& aggregators() const { return state_.aggregators; }
  const Evaluations& evaluations() const { return state_.evaluations; }
  const Readers& readers() const { return state_.readers; }
  const std::deque<RunEvent>& events() const { return state_.events.all(); }
  uint64_t batches_total() const { return state_.work.total(); }
  uint64_t batches_done() const { return state_.work.Done(state_.stages); }
  uint32_t epochs_done() const { return state_.work.EpochsDone(state_.stages); }

  /// Returns whether the worker has mini-batches to push. Where rounds hand them out (hardsync),
  /// every worker has some while any are left.
  bool HasWork(WorkerId worker) const { return state_.work.IsWorkOf(worker, state_.stages); }

  /// Returns the members that the run waits for; nothing if none is missing or the run is over.
  std::optional<MissingMembers> Missing(absl::Time now) const { return questions_.Missing(now); }

  /// Returns the time from the beginning of training until all shards had drained or the run
  /// failed, or else until `now`.
  absl::Duration TrainingTime(absl::Time now) const { return state_.phase.TrainingTime(now); }

 private:
  absl::Status CheckRollback(const ServerReport& report);
  void NoteArrival(const ServerReport& report, Servers::Arrival arrival, absl::Time now);
  absl::Status TakeReports(WorkerId worker, std::span<const UnitReport> reports);
  void ExpireLeases(absl::Time now);
  void OnGone(WorkerId worker, Incarnation gone);
  absl::Status RefuseChange(const RunChange& change) const;
  absl::Status RefuseSave() const;

  RunState state_;
  RunSteps steps_{state_};
  RunQuestions questions_{state_};

  absl::Time last_observed_;
  bool answers_are_held_ = false;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CORE_COORDINATOR_COORDINATOR_H_
