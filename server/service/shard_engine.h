#ifndef SLIPSTREAM_SERVER_SERVICE_SHARD_ENGINE_H_
#define SLIPSTREAM_SERVER_SERVICE_SHARD_ENGINE_H_

#include <bit>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/container/inlined_vector.h"
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
#include "common/run/run_spec.h"
#include "proto/status.pb.h"
#include "server/core/saved_version.h"
#include "server/service/checkpoint_writer.h"
#include "server/service/pull_engine.h"
#include "server/service/push_assembly.h"
#include "server/service/push_engine.h"
#include "server/service/server_orders.h"
#include "server/service/shard.h"
#include "server/service/value_counts.h"
#include "server/status/round_clock.h"
#include "server/status/step_times.h"
#include "server/storage/buffer_pool.h"
#include "server/storage/checkpoint_store.h"
#include "server/storage/push_log_writer.h"

namespace slipstream {

/// A shard with a lock, a thread and a clock: passes events on under the lock, runs the jobs that
/// come of them, and answers the calls that waited. It knows nothing of gRPC's calls.
///
/// Jobs run on the engine's thread. A short job runs on the thread whose push caused it, if no job
/// is before it, because waking another thread takes longer; and so does each job that adds to
/// weights in place, beside those of other threads.
///
/// Thread-safe: guarded by its own mutex, which is held for decisions only; files are written and
/// kernels run without it. Must outlive the calls it answers.
class ShardEngine final : public PushEngine, public PullEngine {
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

    /// Opens the place for the shard's checkpoints of a run. Null if it makes none.
    std::function<absl::StatusOr<std::unique_ptr<CheckpointStore>>(uint64_t run)> open_store =
        nullptr;
  };

  /// `push_log`, if any, gets one line per push that took effect.
  ShardEngine(const Options& options, std::optional<PushLog> push_log);

  /// Finishes the queued jobs. Calls that wait get no answer; they have to be cancelled.
  ~ShardEngine() override;
  ShardEngine(const ShardEngine&) = delete;
  ShardEngine& operator=(const ShardEngine&) = delete;

  void OnOrders(const ServerOrders& orders);
  void OnCoordinatorAsked();
  void OnCoordinatorAnswered();
  v1::ShardStatus Report();
  v1::ShardProgress Progress();

  /// Takes no further pushes and pulls, and saves the newest version unless shards are in step,
  /// which return to a version that all have saved. Waits until what was begun is written. All that
  /// takes at most `time`; what is not written then is lost.
  void Drain(absl::Duration time);

  /// Waits until the push log has all pushes that were decided about, or has ended early. Returns
  /// the reason if it has ended early; empty if it has all pushes or there is no push log.
  /// REQUIRES: no push follows.
  std::string FinishPushLog();
  bool Initialized();
  bool Drained();

  Life CurrentLife();

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

  /// Returns whether readers who are not members wait for a place.
  bool ReadersWait();

  absl::StatusOr<std::optional<Answer>> Pull(const PullRequest& request,
                                             WaitingCall* call) override;
  void FinishPull(WaitingCall* call, const Reader& reader) override;
  WeightsSeal SealOf(const ServedWeights& weights) override;
  BegunPush BeginPush(const PushHeader& header) override;
  std::optional<Answer> FinishPush(PushAssembly push, WaitingCall* call) override;
  void AbandonPush(PushAssembly& push) override;
  bool Cancel(WaitingCall* call) override;
  void ShareVersions() override;
  void CountPushed(uint64_t values, uint64_t bytes) override {
    value_counts_.OnPushed(values, bytes);
  }
  void CountPulled(const Answer& answer, Encoding encoding) override {
    CountPulled(answer, encoding, nullptr);
  }
  void CountPulled(const Answer& answer, Encoding encoding,
                   const VersionChanges::Parts& changes) override;
  bool MayBeMember(const Identity& identity) override;
  bool IsRun(uint64_t run) override;
  ShardId AggregatorOf(WorkerId worker) const override;
  absl::Time now() const override { return options_.now(); }

 private:
  using Deliveries = absl::InlinedVector<Delivery, 1>;

  /// The name of a call is its address: it is answered or cancelled before it is destroyed.
  static CallId NameOf(WaitingCall* call) { return std::bit_cast<CallId>(call); }
  static WaitingCall* CallOf(CallId name) { return std::bit_cast<WaitingCall*>(name); }

  /// Notes the results of an event, and their time, and wakes the thread if there is work for it.
  /// The returned deliveries are for Deliver, once the lock is released.
  Deliveries Absorb(ShardResult result) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void NotePush(const PushRecord& record) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  /// Answers all calls but `own`. Returns the answer of `own` if it is among them.
  static std::optional<absl::StatusOr<Answer>> Deliver(Deliveries deliveries,
                                                       WaitingCall* own = nullptr);

  void RunJobs();
  void RunJob(Shard::Job job);

  /// Opens the place for checkpoints, if the run is known and that was not done yet.
  void OpenStore(uint64_t run);

  /// Names the model to it, if both are there.
  void NoteModel() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  /// Notes whether the orders make the shard return.
  Deliveries NoteReturn() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool MayReturn() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  /// Goes back to a checkpoint. Returns why that failed; the shard then waits for other orders.
  absl::Status Return(const ShardReturn& to, const ModelOrders& model);
  void NoteFailedReturn(const ShardReturn& to, const absl::Status& failure);
  void WakeThread() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Constant after construction.
  const Options options_;

  Mutex mutex_;
  CondVar work_came_;
  ValueCounts value_counts_;
  Shard shard_ ABSL_GUARDED_BY(mutex_);
  RoundClock round_clock_ ABSL_GUARDED_BY(mutex_);
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

  // Why it could not be set. While another process has the directory, it is tried again.
  absl::Status store_failure_ ABSL_GUARDED_BY(mutex_);
  bool is_stopping_ ABSL_GUARDED_BY(mutex_) = false;

  const std::unique_ptr<PushLogWriter> push_log_;  // May be null.
  std::thread thread_;                             // Last: it uses everything above.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_SERVICE_SHARD_ENGINE_H_
