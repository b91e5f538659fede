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
#include "common/base/ids.h"
#include "common/base/mutex.h"
#include "common/process/memory_bytes.h"
#include "common/protocol/shard_messages.h"
#include "common/run/run_spec.h"
#include "proto/status.pb.h"
#include "server/service/push_assembly.h"
#include "server/service/server_orders.h"
#include "server/service/shard.h"
#include "server/status/round_clock.h"
#include "server/status/step_times.h"
#include "server/storage/buffer_pool.h"
#include "server/storage/push_log_writer.h"

namespace slipstream {

/// A call whose answer may come later, from the engine's thread.
class WaitingCall {
 public:
  virtual ~WaitingCall() = default;

  /// Called at most once, with no lock held, and never after Cancel returned true; perhaps before
  /// the engine has said that the call waits, on the thread that is about to hear it.
  virtual void OnAnswer(Answer answer) = 0;
};

/// A shard with a lock, a thread and a clock: passes on events under the lock, has the jobs run
/// that come of them, and answers the calls that waited. Knows nothing of gRPC's calls.
///
/// Jobs run on the engine's thread; a short one on the thread whose push caused it, if nothing is
/// before it, because waking another takes longer.
///
/// Thread-safe: guarded by its own mutex, which is held for decisions only; files are written and
/// kernels run without it. Must outlive the calls it answers.
class ShardEngine {
 public:
  struct Options {
    ShardId shard{};

    /// As other processes reach it; for status.
    std::string address;
    RunSpec run;

    /// What the machine can spare, in bytes; a model that needs more is refused.
    std::function<uint64_t()> memory_available = AvailableMemoryBytes;

    /// This is told how many values the shard has, once the model is known and has a place. It is
    /// called under the engine's lock.
    std::function<void(uint64_t values)> on_model = [](uint64_t) {};

    /// For what is shown and logged; must not go back.
    std::function<absl::Time()> now = [] { return absl::Now(); };
  };

  /// `push_log`, if any, gets one line per push that took effect.
  ShardEngine(const Options& options, std::optional<PushLog> push_log);

  /// Finishes what is queued; waiting calls are left to their cancellation.
  ~ShardEngine();
  ShardEngine(const ShardEngine&) = delete;
  ShardEngine& operator=(const ShardEngine&) = delete;

  void OnOrders(const ServerOrders& orders);
  void OnCoordinatorAsked();
  void OnCoordinatorAnswered();
  v1::ShardStatus Report();
  v1::ShardProgress Progress();
  bool Initialized();
  bool Drained();

  /// Whether it is a member's, or may be one's whose view is on its way.
  bool MayBeMember(const Identity& identity);
  bool IsRun(uint64_t run);

  /// Returns what OrdersSink::MembersMax promises.
  uint32_t MembersMax();

  /// Why this shard cannot take part in the run; empty if nothing keeps it.
  std::string Failure();

  /// A buffer for the initial weights, or why they are not taken from this client.
  absl::StatusOr<std::shared_ptr<FloatBuffer>> BeginInitialize(const InitializeHeader& header);
  absl::Status FinishInitialize(const InitializeHeader& header, Weights weights);

  /// The answer, or nothing: then `call` gets it later. Fails with the refusal.
  absl::StatusOr<std::optional<Answer>> Pull(const PullRequest& request, WaitingCall* call);

  /// Readers who are no members wait for a place.
  bool ReadersWait();

  /// A pull of this reader that got an answer has sent it, or its call is gone.
  void FinishPull(const Reader& reader);

  /// As the shard has them.
  BegunPush BeginPush(const PushHeader& header);
  std::optional<Answer> FinishPush(PushAssembly push, WaitingCall* call);
  void AbandonPush(PushAssembly& push);

  /// From now on new versions are made where processes of this machine can read them.
  void ShareVersions();

  absl::Time now() const { return options_.now(); }

  /// True if the call was waiting; it waits no more and gets no answer.
  bool Cancel(WaitingCall* call);

 private:
  using Deliveries = absl::InlinedVector<Delivery, 1>;

  /// The name of a call is where it is: it is answered or cancelled before it goes.
  static CallId NameOf(WaitingCall* call) { return std::bit_cast<CallId>(call); }
  static WaitingCall* CallOf(CallId name) { return std::bit_cast<WaitingCall*>(name); }

  /// Notes what came of an event, and when, and wakes the thread if there is something for it. What
  /// is returned is for Deliver, once the lock is released.
  Deliveries Absorb(ShardResult result) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void NotePush(const PushRecord& record) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  /// Answers all calls but `own`, whose answer is returned if it is among them.
  static std::optional<absl::StatusOr<Answer>> Deliver(Deliveries deliveries,
                                                       WaitingCall* own = nullptr);

  void RunJobs();
  void RunJob(Shard::Job job);
  void WakeThread() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Constant after construction.
  const Options options_;

  Mutex mutex_;
  CondVar work_came_;
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
