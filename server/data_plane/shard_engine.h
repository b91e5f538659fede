#ifndef SLIPSTREAM_SERVER_DATA_PLANE_SHARD_ENGINE_H_
#define SLIPSTREAM_SERVER_DATA_PLANE_SHARD_ENGINE_H_

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/check.h"
#include "common/base/encoding.h"
#include "common/base/ids.h"
#include "common/base/mutex.h"
#include "common/process/process_limits.h"
#include "common/protocol/shard_messages.h"
#include "common/settings/run_spec.h"
#include "proto/status.pb.h"
#include "server/control_plane/server_orders.h"
#include "server/core/saved_version.h"
#include "server/data_plane/checkpoint_writer.h"
#include "server/data_plane/data_plane_engine.h"
#include "server/data_plane/push_assembly.h"
#include "server/data_plane/shard.h"
#include "server/data_plane/shard_log.h"
#include "server/data_plane/shard_recovery.h"
#include "server/data_plane/value_counts.h"
#include "server/status/round_clock.h"
#include "server/status/step_times.h"
#include "server/storage/buffer_pool.h"
#include "server/storage/checkpoint_store.h"
#include "server/storage/push_log_writer.h"

namespace slipstream {

/// A shard with a lock, a thread and a clock: passes events on under the lock, runs the jobs that
/// come of them, and answers the calls that waited. It knows nothing of gRPC's calls.
///
/// Under durability.level synced it keeps a log of what the shard is told. Then no answer is given
/// before the log is on the disk as far as the shard had come when it decided: every call may have
/// to wait for its answer, which then comes on the log's thread. A new process first redoes the
/// log, and meanwhile refuses pushes and pulls.
///
/// Jobs run on the engine's thread. A short job runs on the thread whose push caused it, if no job
/// is before it, because waking another thread takes longer; and so does each job that adds to
/// weights in place, beside those of other threads.
///
/// Thread-safe: guarded by its own mutex, which is held for decisions only; files are written and
/// kernels run without it. Must outlive the calls it answers.
class ShardEngine final : public DataPlaneEngine {
 public:
  struct Options {
    ShardId shard{};

    /// The address at which other processes reach the shard; for status.
    std::string address;
    RunSpec run;

    /// How much memory this computer can spare, in bytes. A model that needs more is refused.
    std::function<uint64_t()> memory_available = AvailableMemoryBytes;

    /// Called with the number of the shard's values, once the model is known and has its memory. It
    /// is called under the engine's lock.
    std::function<void(uint64_t values)> on_model = [](uint64_t) {};

    /// The clock for status, log and time limits; must not go back.
    std::function<absl::Time()> now = [] { return absl::Now(); };

    /// Opens the place for the shard's checkpoints of a run. Once that has begun, it has to be
    /// there. Null if the shard makes none.
    std::function<absl::StatusOr<std::unique_ptr<CheckpointStore>>(uint64_t run, bool has_begun)>
        open_store = nullptr;

    /// As in Shard::Options. It is called without the engine's lock.
    ReadRunStart read_start = nullptr;

    /// Called if the shard's log cannot be written, with UNAVAILABLE, or not be redone, with the
    /// failure of RecoverShard, or with FAILED_PRECONDITION if another release has written what the
    /// directory has; the status names the file. Nothing that is not in the log may be
    /// told, so the process has to end within the call. It may come on several threads at once,
    /// without a lock.
    std::function<void(const absl::Status&)> on_lost_log = [](const absl::Status&) {};
  };

  /// `push_log`, if any, gets one line per push that took effect.
  ShardEngine(const Options& options, std::optional<PushLog> push_log);

  /// Finishes the queued jobs, and writes the log. Calls that wait get no answer; they have to be
  /// cancelled.
  ~ShardEngine() override;
  ShardEngine(const ShardEngine&) = delete;
  ShardEngine& operator=(const ShardEngine&) = delete;

  void OnOrders(const ServerOrders& orders);
  void OnCoordinatorAsked();
  void OnCoordinatorAnswered();

  /// Returns whether this process goes on from a log, and the coordinator has yet to hear where,
  /// and to answer that neither this nor its own state is an older copy. It serves nobody before.
  bool AwaitsCoordinator();

  /// Notes that the coordinator is being told.
  void OnDescribed();
  v1::ShardStatus Report();
  v1::ShardProgress Progress();

  /// Takes no further pushes and pulls, and saves the newest version unless shards are in step,
  /// which return to a version that all have saved. Waits until what was begun is written. All that
  /// takes at most `time`; what is not written then is lost, and DATA_LOSS names its directory and
  /// the reason.
  ///
  /// With a log there is nothing to save: once this returns, the log has all that the shard has
  /// decided, and nothing more is decided. If the log is late, it is lost.
  absl::Status Drain(absl::Duration time);

  /// Returns whether a thread writes or reads a checkpoint. The destructor would wait for it.
  bool IsAtDisk();

  /// Waits until the push log has all pushes that were decided about, or has ended early. Returns
  /// the reason if it has ended early; empty if it has all pushes or there is no push log.
  /// REQUIRES: no push follows.
  std::string FinishPushLog();

  /// Returns whether the weights of the newest grant, or those that an earlier process has left,
  /// are in place; with durability, they are on the disk as well. Without a log it is enough that
  /// the last try to save them has failed.
  bool Initialized();
  bool Drained();

  /// Returns how many events the log has been given, written or not; 0 without a log, or before it
  /// begins.
  uint64_t Recorded();

  /// Waits until so many of them are on the disk, at most for `time`. Returns whether they are.
  bool AwaitSynced(uint64_t events, absl::Duration time);

  Generation CurrentGeneration();

  /// Returns the checkpoints that the shard could go on from, oldest first; nothing while the run
  /// is not known, or another process has the directory.
  std::optional<std::vector<SavedVersion>> Saved();

  /// Returns for how many members' gradients the shard has memory; 0 while it does not know.
  uint32_t MembersMax();

  /// Returns why this shard cannot take part in the run; empty if it can.
  std::string Failure();

  /// Returns a buffer for the initial weights, or why they are not taken from this client.
  absl::StatusOr<std::shared_ptr<FloatBuffer>> BeginInitialize(const InitializeHeader& header);
  absl::Status FinishInitialize(const InitializeHeader& header, Weights weights);

  std::optional<Answer> Pull(const PullRequest& request, WaitingCall* call) override;
  void FinishPull(WaitingCall* call, const Reader& reader) override;
  std::optional<WeightsTrailer> TrailerOf(const Answer& answer) override;
  BegunPush BeginPush(const PushHeader& header) override;
  std::optional<Answer> FinishPush(PushAssembly push, WaitingCall* call) override;
  std::optional<Answer> Refuse(PushReply refusal, WaitingCall* call) override;
  void AbandonPush(PushAssembly& push) override;
  void OnCallGone(WaitingCall* /*call*/) override {}
  bool ReadersWait() override;
  bool Cancel(WaitingCall* call) override;
  void ShareVersions() override;
  void CountPushed(uint64_t values, uint64_t bytes) override {
    value_counts_.OnPushed(values, bytes);
  }
  void CountPulled(const Answer& answer, Encoding encoding,
                   const VersionChanges::Parts& changes) override;
  bool MayBeMember(const Identity& identity) override;
  uint64_t RunNumber() override;
  ShardId AggregatorOf(WorkerId worker) const override;
  absl::Time now() const override { return options_.now(); }

 private:
  /// The results of an event, until the log has the event.
  struct Held {
    uint64_t position = 0;  // How much the log must have on the disk.
    Version published{};    // The newest version then.
    Answers answers;
    std::shared_ptr<const ShardSave> save;  // May be null.
  };

  /// How far the engine is with its log.
  enum class LogStage : uint8_t {
    kNone,      // The settings want none.
    kNotBegun,  // It is not known yet whether an earlier process has left one.
    kIsDue,     // The thread has to redo it.
    kBeingRedone,
    kKept,  // log_ is set.
  };

  /// Notes the results of an event, and their time, and wakes the thread if there is work for it.
  /// The returned answers are for Deliver, once the lock is released.
  Answers Absorb(ShardResult result) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void NotePush(const PushRecord& record) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  /// Returns the answers if they may be given now. Else holds them until the log is on the disk
  /// so far, and so the save, behind which the log must not lack anything.
  Answers HoldUntilSynced(Answers answers, std::shared_ptr<const ShardSave> save)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnSynced(uint64_t synced);

  /// Answers all calls but `own`. Returns the answer of `own` if it is among them.
  static std::optional<Answer> Deliver(Answers answers, WaitingCall* own = nullptr);

  /// Takes the answer of a call away if it is held.
  bool DropHeld(CallId call) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  bool AwaitsCoordinatorLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  /// Returns whether so much waits for the disk already that no push may be begun.
  bool LogIsFull() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  std::unique_ptr<Shard> NewShard() const;
  void RunJobs();
  void RunJob(ShardJob job);

  /// Opens the place for checkpoints, if the run is known and that was not done yet.
  void OpenStore(uint64_t run, Phase phase);

  /// Decides, at the first orders after the place is open, whether the shard goes on from a log or
  /// begins one. Returns whether the shard takes orders.
  bool TakesOrders() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void BeginLog(uint64_t last_segment) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  /// Tells the shard the orders, unless they have to wait.
  Answers GiveOrders() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  /// Goes on from what an earlier process has left.
  void Recover();
  void GoOnFrom(const RecoveredShard& recovered, std::unique_ptr<Shard> shard);

  /// Waits until the log has all that was recorded so far. Loses it if `end` passes before.
  void FinishLog(std::chrono::steady_clock::time_point end);
  void Write(std::shared_ptr<const ShardSave> save) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  /// Names the model to it, if both are there.
  void NoteModel() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  /// Notes whether the orders make the shard return.
  Answers NoteReturn() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool MayReturn() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  /// Goes back to a checkpoint. Returns why that failed; the shard then waits for other orders.
  absl::Status Return(const ShardReturn& to, const ModelOrders& model);
  void LoseLog(const absl::Status& failure);
  void NoteFailedReturn(const ShardReturn& to, const absl::Status& failure);
  void WakeThread() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Constant after construction.
  const Options options_;

  Mutex mutex_;
  CondVar work_came_;
  ValueCounts value_counts_;

  // Another one takes its place once it has gone on from a log.
  std::unique_ptr<Shard> shard_ ABSL_GUARDED_BY(mutex_);
  RoundClock round_clock_ ABSL_GUARDED_BY(mutex_);
  TimeCounts push_times_ ABSL_GUARDED_BY(mutex_);
  StepTimes step_times_ ABSL_GUARDED_BY(mutex_);
  ServerOrders orders_ ABSL_GUARDED_BY(mutex_);

  // The newest save from before the place for checkpoints was open; null if there was none.
  std::shared_ptr<const ShardSave> unsaved_ ABSL_GUARDED_BY(mutex_);

  // Set once the process ends: the shard returns nowhere any more.
  bool is_draining_ ABSL_GUARDED_BY(mutex_) = false;

  // Where the shard has to return to; empty once it has, or could not.
  std::optional<ShardReturn> return_ ABSL_GUARDED_BY(mutex_);

  // Set once, by the thread that brings orders; null before, and without durability.
  std::shared_ptr<CheckpointWriter> checkpoints_ ABSL_GUARDED_BY(mutex_);

  // Why it could not be set. It is tried again with each report.
  absl::Status store_failure_ ABSL_GUARDED_BY(mutex_);

  // Set while the thread of the jobs reads what the directory has.
  bool is_recovering_ ABSL_GUARDED_BY(mutex_) = false;

  // Why the shard cannot go on from what its directory has; empty if it can.
  std::string recovery_failure_ ABSL_GUARDED_BY(mutex_);
  bool is_stopping_ ABSL_GUARDED_BY(mutex_) = false;

  // The log.
  LogStage log_stage_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_segment_ ABSL_GUARDED_BY(mutex_) = 0;  // The newest one when the place was opened.
  std::unique_ptr<ShardLog> log_ ABSL_GUARDED_BY(mutex_);  // Set once.
  std::deque<Held> held_ ABSL_GUARDED_BY(mutex_);          // By position.
  Version published_and_synced_ ABSL_GUARDED_BY(mutex_){};
  bool is_log_lost_ ABSL_GUARDED_BY(mutex_) = false;

  // The log that this process found when it began; empty if it began the run.
  std::optional<RecoveredShard> recovered_ ABSL_GUARDED_BY(mutex_);

  // Whether the coordinator was told of it, and has taken it: an older copy of the directory would
  // answer workers with what they know to be over.
  bool is_recovery_told_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_recovery_taken_ ABSL_GUARDED_BY(mutex_) = false;

  const std::unique_ptr<PushLogWriter> push_log_;  // May be null.
  std::thread thread_;                             // Last: it uses everything above.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_DATA_PLANE_SHARD_ENGINE_H_
