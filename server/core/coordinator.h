#ifndef SLIPSTREAM_SERVER_CORE_COORDINATOR_H_
#define SLIPSTREAM_SERVER_CORE_COORDINATOR_H_

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/protocol/shard_messages.h"
#include "common/protocol/view.h"
#include "common/run/run_spec.h"
#include "server/core/coordinator_evaluations.h"
#include "server/core/coordinator_initialization.h"
#include "server/core/coordinator_membership.h"
#include "server/core/coordinator_orders.h"
#include "server/core/coordinator_servers.h"
#include "server/core/coordinator_work_ledger.h"
#include "server/core/stop_conditions.h"

namespace slipstream {

/// The control plane of one run: takes what servers and workers report and what time brings, and
/// moves the run through its phases.
///
/// A pure state machine. Calls that have to wait are not kept here: an answer of kWait means "ask
/// again when changes() has risen", so a call that is given up leaves nothing behind.
///
/// Codes of refusals: UNAVAILABLE, ask again later; FAILED_PRECONDITION, register again;
/// OUT_OF_RANGE, the run has finished; ABORTED, it failed; INVALID_ARGUMENT, what was sent does not
/// fit the run.
///
/// Invariants:
///  - phases only advance, and kFinished and kFailed are final;
///  - the number of the orders rises with every change of them;
///  - nothing that a fenced, dead or departed worker sends has an effect.
///
/// Not thread-safe: one owner, which serialises calls.
class Coordinator {
 public:
  /// Something that happened, for the log.
  struct Note {
    bool is_warning = false;
    std::string text;
  };

  struct Preparation {
    enum class State : uint8_t { kWait, kGranted, kReady };
    State state = State::kWait;
    uint64_t grant = 0;
    ShardMap shard_map;

    /// What is being waited for, for people.
    std::string message;
  };

  struct Progress {
    uint64_t unit = 0;
    uint64_t batches_done = 0;
  };

  struct Work {
    enum class State : uint8_t { kWait, kUnit, kFinished };
    State state = State::kWait;
    WorkLedger::Unit unit;
  };

  /// `run` names this run; `start` is when start_timeout begins.
  Coordinator(uint64_t run, const RunSpec& spec, absl::Time start);

  /// Servers. A report of a process that takes another's place ends a run that trains, as weights
  /// are lost.
  absl::Status OnServer(const ServerReport& report, absl::Time now);

  /// Notes, once for each process and reason, that a server was turned away: its own log may be out
  /// of sight.
  void NoteRefusal(const ServerReport& report, const absl::Status& reason);

  /// Workers. Every call of a live one renews its lease.
  absl::StatusOr<Identity> OnRegister(const Applicant& applicant, absl::Time now);
  absl::StatusOr<Preparation> OnPrepareModel(const Identity& worker, const TensorLayout& layout,
                                             const Initialization::Data& data, absl::Time now);
  absl::Status OnFinishInitialization(const Identity& worker, uint64_t grant, absl::Time now);
  absl::Status OnHeartbeat(const Identity& worker, std::span<const Progress> progress,
                           absl::Time now);

  /// This incarnation pushes nothing more: what is left of its units is free.
  absl::Status OnDonePushing(const Identity& worker, absl::Time now);

  /// A worker has measured so many examples for an evaluation: if that is ordered from it, it has
  /// time for more.
  void OnMeasured(const Identity& worker, uint64_t evaluation, uint64_t examples, absl::Time now);

  absl::Status OnReport(const Identity& worker, uint64_t evaluation, Evaluation result,
                        const std::string& weights_sha256, absl::Time now);

  /// `ends_run`: no other worker could go on either, so the run fails with its failure. `progress`
  /// tells of what was pushed since the last heartbeat.
  absl::Status OnLeave(const Identity& worker, const std::string& failure, absl::Time now,
                       bool ends_run = false, std::span<const Progress> progress = {});

  /// What time alone brings about: leases and timeouts end.
  void Tick(absl::Time now);

  /// Notes that time has passed; to be called before an event that comes between two ticks. Time in
  /// which nothing was noted for more than half a lease counts for nobody: this process was stopped
  /// and could not hear what the others said. Leases and timeouts are longer by so much.
  void Observe(absl::Time now);

  /// The answers to a waiting PrepareModel and GetWork. They renew no lease. `newest_unit`: the
  /// newest unit this worker knows of; one that it never got is given again.
  absl::StatusOr<Preparation> AskModel(const Identity& worker) const;
  absl::StatusOr<Work> AskWork(const Identity& worker, std::optional<uint64_t> newest_unit);

  /// Rises whenever a waiting call may have an answer.
  uint64_t changes() const { return changes_; }
  const ServerOrders& orders() const { return orders_; }

  /// Of the open evaluation if it is this worker's, else nothing.
  std::optional<Evaluations::Order> EvaluationFor(WorkerId worker) const;

  /// True once every server that is still there knows that it may exit.
  bool ServersMayStop(absl::Time now) const;

  /// No work is handed out any more, and workers leave what they hold.
  bool WorkEnds() const { return end_reason_.has_value(); }

  /// What happened since the last call.
  std::vector<Note> TakeNotes();

  // For status.
  Phase phase() const { return phase_; }
  const std::string& failure() const { return failure_; }

  /// Nothing while training goes on, and of a run that failed in it.
  std::optional<EndReason> end_reason() const { return end_reason_; }
  const Membership& membership() const { return membership_; }
  const Servers& servers() const { return servers_; }
  const Evaluations& evaluations() const { return evaluations_; }
  uint64_t batches_total() const;
  uint64_t batches_done() const;
  uint32_t epochs_done() const;

  /// Whether the worker has mini-batches to push: under hardsync, where rounds hand them out, all
  /// have while there are any.
  bool HasWork(WorkerId worker) const;

  /// From the beginning of training until its last push was answered, or now.
  absl::Duration TrainingTime(absl::Time now) const;

 private:
  bool IsOver() const { return phase_ == Phase::kFinished || phase_ == Phase::kFailed; }
  absl::Status RefuseIfOver() const;
  absl::Status TakeProgress(const Identity& worker, std::span<const Progress> progress);
  void OnGone(WorkerId worker, Incarnation gone);

  // Each returns whether it changed the phase or a grant, so that more may follow.
  bool AdvanceOnce(absl::Time now);
  bool AdvanceServers(absl::Time now);
  bool AdvanceWorkers(absl::Time now);
  bool AdvanceInitialization(absl::Time now);
  bool AdvanceTraining(absl::Time now);
  bool WorkIsDone();
  void EndWorkIfDue(absl::Time now);
  bool AdvanceDeserted(absl::Time now);
  bool AwaitReturn(const char* purpose, absl::Time now);
  bool AdvanceEvaluation(absl::Time now);

  void Advance(absl::Time now);
  void AssignEvaluation(WorkerId worker, absl::Time now);
  std::optional<WorkerId> FindEvaluator() const;
  void GiveUpLateEvaluator(absl::Time now);
  void NoteSkipped(uint32_t epoch);
  void MoveTo(Phase phase, absl::Time now);
  bool Fail(std::string reason, absl::Time now);
  std::string MissingWorkers() const;
  std::string LastWords() const;
  void PublishOrders();
  void AddNote(bool is_warning, std::string text);

  // Constant after construction.
  const uint64_t run_;
  const bool works_in_rounds_;
  const uint32_t workers_to_start_;
  const uint32_t batch_size_;
  const uint64_t quantum_;  // Mini-batches of one push.
  const StopConditions stop_conditions_;
  const absl::Duration lease_;
  const absl::Duration start_timeout_;
  const bool exits_after_;

  Membership membership_;
  Servers servers_;
  Initialization initialization_;
  Evaluations evaluations_;

  // From the beginning of training, unless hardsync.
  std::optional<WorkLedger> ledger_;

  Phase phase_ = Phase::kWaitingForServers;
  std::string failure_;
  absl::Time phase_since_;
  absl::Time start_;
  absl::Time last_observed_;
  absl::Time training_began_ = absl::InfiniteFuture();
  absl::Time trained_until_ = absl::InfiniteFuture();

  // When the open evaluation was ordered, or last got on; and how far it is, in examples.
  absl::Time evaluation_heard_ = absl::InfinitePast();
  uint64_t measured_ = 0;

  // What was noted of servers turned away, by process and reason; at most kRefusalsMax.
  std::set<std::pair<uint64_t, std::string>> refusals_;

  // Since when training goes on without a worker.
  std::optional<absl::Time> deserted_since_;

  // Hardsync's last mini-batch is part of the weights.
  bool rounds_done_ = false;

  // Set when work ends, early or not; the orders tell of an early end.
  std::optional<EndReason> end_reason_;
  bool ends_early_ = false;

  ServerOrders orders_;

  // The orders that told of the newest grant, and of the phase.
  uint64_t grant_orders_ = 0;
  uint64_t phase_orders_ = 0;
  uint64_t changes_ = 0;
  std::vector<Note> notes_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CORE_COORDINATOR_H_
