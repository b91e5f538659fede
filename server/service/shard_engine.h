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
#include "server/service/push_assembly.h"
#include "server/service/server_orders.h"
#include "server/service/shard.h"
#include "server/service/value_counts.h"
#include "server/status/round_clock.h"
#include "server/status/step_times.h"
#include "server/storage/buffer_pool.h"
#include "server/storage/push_log_writer.h"

namespace slipstream {

/// A call whose answer may come later, from the engine's thread.
class WaitingCall {
 public:
  virtual ~WaitingCall() = default;

  /// Called at most once, with no lock held, and never after Cancel returned true. It may be called
  /// on the thread that is still inside Pull or FinishPush, before that function has returned
  /// nothing.
  virtual void OnAnswer(Answer answer) = 0;

  // These two are for pulls alone.

  /// Called in place of OnAnswer.
  virtual void OnRefused(const absl::Status&) { PS_CHECK(false); }

  /// Called while the answer is sent, with the engine's lock held: the version cannot be kept any
  /// longer, and the call has to end.
  virtual void OnLagged(const absl::Status&) { PS_CHECK(false); }
};

/// A shard with a lock, a thread and a clock: passes events on under the lock, runs the jobs that
/// come of them, and answers the calls that waited. It knows nothing of gRPC's calls.
///
/// Jobs run on the engine's thread. A short job runs on the thread whose push caused it, if no job
/// is before it, because waking another thread takes longer; and so does each job that adds to
/// weights in place, beside those of other threads.
///
/// Thread-safe: guarded by its own mutex, which is held for decisions only; files are written and
/// kernels run without it. Must outlive the calls it answers.
class ShardEngine {
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
  };

  /// `push_log`, if any, gets one line per push that took effect.
  ShardEngine(const Options& options, std::optional<PushLog> push_log);

  /// Finishes the queued jobs. Calls that wait get no answer; they have to be cancelled.
  ~ShardEngine();
  ShardEngine(const ShardEngine&) = delete;
  ShardEngine& operator=(const ShardEngine&) = delete;

  void OnOrders(const ServerOrders& orders);
  void OnCoordinatorAsked();
  void OnCoordinatorAnswered();
  v1::ShardStatus Report();
  v1::ShardProgress Progress();

  /// Waits until the push log has all pushes that were decided about, or has ended early. Returns
  /// the reason if it has ended early; empty if it has all pushes or there is no push log.
  /// REQUIRES: no push follows.
  std::string FinishPushLog();
  bool Initialized();
  bool Drained();

  /// Returns whether the identity is a member's, or may be one whose view is on its way.
  bool MayBeMember(const Identity& identity);
  bool IsRun(uint64_t run);

  /// Returns the number that OrdersSink::MembersMax promises.
  uint32_t MembersMax();

  /// Returns why this shard cannot take part in the run; empty if it can.
  std::string Failure();

  /// Returns a buffer for the initial weights, or why they are not taken from this client.
  absl::StatusOr<std::shared_ptr<FloatBuffer>> BeginInitialize(const InitializeHeader& header);
  absl::Status FinishInitialize(const InitializeHeader& header, Weights weights);

  /// Returns the answer, or nothing if `call` gets it later. Fails with the refusal.
  absl::StatusOr<std::optional<Answer>> Pull(const PullRequest& request, WaitingCall* call);

  /// Returns whether readers who are not members wait for a place.
  bool ReadersWait();

  /// Notes that an answered pull of this reader has sent its answer, or that its call is gone.
  void FinishPull(WaitingCall* call, const Reader& reader);

  /// Returns the facts that go behind these weights, if they are sent by now.
  WeightsSeal SealOf(const ServedWeights& weights);

  /// Do as Shard's functions of the same names.
  BegunPush BeginPush(const PushHeader& header);
  std::optional<Answer> FinishPush(PushAssembly push, WaitingCall* call);
  void AbandonPush(PushAssembly& push);

  /// Makes new versions, from now on, where processes of this machine can read them.
  void ShareVersions();

  /// Counts the values of a push, or of an answer that is sent in this encoding, or by changes.
  void CountPushed(uint64_t values, uint64_t bytes) { value_counts_.OnPushed(values, bytes); }
  void CountPulled(const Answer& answer, Encoding encoding,
                   const VersionChanges::Parts& changes = nullptr);

  absl::Time now() const { return options_.now(); }

  /// Returns true if the call was waiting. Then it waits no more and gets no answer.
  bool Cancel(WaitingCall* call);

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
  bool is_stopping_ ABSL_GUARDED_BY(mutex_) = false;

  const std::unique_ptr<PushLogWriter> push_log_;  // May be null.
  std::thread thread_;                             // Last: it uses everything above.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_SERVICE_SHARD_ENGINE_H_
