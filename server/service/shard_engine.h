#ifndef SLIPSTREAM_SERVER_SERVICE_SHARD_ENGINE_H_
#define SLIPSTREAM_SERVER_SERVICE_SHARD_ENGINE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/base/mutex.h"
#include "common/protocol/shard_messages.h"
#include "common/run/run_spec.h"
#include "proto/status.pb.h"
#include "server/core/round_clock.h"
#include "server/core/shard_core.h"
#include "server/core/step_times.h"
#include "server/service/push_assembly.h"
#include "server/service/server_orders.h"
#include "server/service/shard_job.h"
#include "server/service/update_draft.h"
#include "server/service/update_path.h"
#include "server/storage/buffer_pool.h"
#include "server/storage/memory_budget.h"
#include "server/storage/push_log.h"

namespace slipstream {

/// The weights of one version, as an answer carries them.
struct ServedWeights {
  WeightsHeader header;

  /// Shared with the shard and with other answers, see buffer_pool.h. Null if `header` says that
  /// the reader has them.
  Weights weights;
};

/// What a call is answered with.
struct Answer {
  std::optional<PushReply> push;
  std::optional<ServedWeights> weights;
};

/// A call whose answer may come later, from the engine's thread.
class WaitingCall {
 public:
  virtual ~WaitingCall() = default;

  /// Called at most once, with no lock held, and never after Cancel returned true; perhaps before
  /// the engine has said that the call waits, on the thread that is about to hear it.
  virtual void OnAnswer(Answer answer) = 0;

 private:
  friend class ShardEngine;
  std::optional<Ticket> ticket_;  // Guarded by the engine's mutex; set while the call waits.
};

/// Runs one shard: asks the core under a lock, has the kernels run that the core orders, and
/// answers the calls that waited for the result. Knows nothing of gRPC's calls.
///
/// Jobs run one after another in the order of decisions, on the engine's thread; a short one on the
/// thread whose push caused it, if nothing is before it, because waking another takes longer.
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
  v1::ShardStatus Report();
  bool Initialized();
  bool Drained();

  /// Why this shard cannot take part in the run; empty if nothing keeps it.
  std::string Failure();

  /// A buffer for the initial weights, or why they are not taken from this client.
  absl::StatusOr<std::shared_ptr<FloatBuffer>> BeginInitialize(const InitializeHeader& header);
  absl::Status FinishInitialize(const InitializeHeader& header, Weights weights);

  /// The answer, or nothing: then `call` gets it later. Fails with the refusal.
  absl::StatusOr<std::optional<Answer>> Pull(const PullRequest& request, WaitingCall* call);

  /// A pull of this reader that got an answer has sent it, or its call is gone.
  void FinishPull(ShardCore::Reader reader);

  /// Whether the payload behind this header is wanted.
  struct BegunPush {
    /// Nothing: it is, and exactly one of FinishPush and AbandonPush has to follow.
    std::optional<PushReply> refusal;

    /// Wanted or not, as ShardCore::IsOfMember has it.
    bool is_of_member = false;

    /// Of the update that the push will probably cause; null if none was begun.
    std::shared_ptr<UpdateDraft> draft;
  };
  BegunPush BeginPush(const PushHeader& header);
  std::optional<Answer> FinishPush(PushAssembly push, WaitingCall* call);
  void AbandonPush(const PushHeader& header);

  /// From now on new versions are made where processes of this machine can read them.
  void ShareVersions();

  absl::Time now() const { return options_.now(); }

  /// True if the call was waiting; it waits no more and gets no answer.
  bool Cancel(WaitingCall* call);

 private:
  struct Parked {
    WaitingCall* call = nullptr;
    std::optional<PushReply> push;
    bool wants_weights = false;
    std::optional<WorkerId> trainer;  // Will push a gradient computed from the weights.
    std::optional<Version> held;      // Its values are with the caller already.
  };
  using Delivery = std::pair<WaitingCall*, Answer>;

  /// Queues what the effects order; returns the answers to be given once the lock is released.
  std::vector<Delivery> Absorb(const Effects& effects) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::optional<Answer> AnswerNow(const std::variant<Serve, Park>& outcome, Parked parked)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  ServedWeights Give(const Parked& to, Version version, std::optional<RoundWork> work)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void NoteStep(const PushHeader& header) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckInitializer(const InitializeHeader& header) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  /// Makes room for the model once it is named; says why there is none, or nothing.
  std::string TakeModel(const ServerOrders& orders) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string MakePath(size_t values) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  void RunJobs();

  /// REQUIRES: the job was taken by TakeJob, and no other was since.
  void RunJob(ShardJob job);
  ShardJob TakeJob() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  /// The job that has just been queued, if the calling thread may as well run it.
  std::optional<ShardJob> TakeShortJob() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  /// Wakes the engine's thread if there is something for it. To be called before the lock is
  /// released, wherever jobs or records may have been queued.
  void WakeThread() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool ThreadHasWork() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return !records_.empty() || (!jobs_.empty() && !is_running_);
  }
  void WriteLog(const std::vector<PushRecord>& records);
  static void Deliver(std::vector<Delivery>&& deliveries);

  // Constant after construction.
  const Options options_;

  Mutex mutex_;
  CondVar work_came_;
  ShardCore core_ ABSL_GUARDED_BY(mutex_);
  RoundClock round_clock_ ABSL_GUARDED_BY(mutex_);
  StepTimes step_times_ ABSL_GUARDED_BY(mutex_);
  ServerOrders orders_ ABSL_GUARDED_BY(mutex_);

  // Of the initial weights that came last, and of those that are version 0.
  uint64_t queued_grant_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t initialized_grant_ ABSL_GUARDED_BY(mutex_) = 0;
  std::string failure_ ABSL_GUARDED_BY(mutex_);
  Weights published_ ABSL_GUARDED_BY(mutex_);
  std::map<PushId, PushPayload> held_ ABSL_GUARDED_BY(mutex_);
  std::map<Ticket, Parked> parked_ ABSL_GUARDED_BY(mutex_);
  std::deque<ShardJob> jobs_ ABSL_GUARDED_BY(mutex_);
  std::vector<PushRecord> records_ ABSL_GUARDED_BY(mutex_);
  bool is_running_ ABSL_GUARDED_BY(mutex_) = false;  // A job, on some thread.
  bool is_stopping_ ABSL_GUARDED_BY(mutex_) = false;

  // Set once under the lock when the model is known; its numbers belong to the thread that runs a
  // job, and while none does, to whoever holds the lock.
  std::unique_ptr<UpdatePath> path_;

  // Owned by the engine's thread.
  std::optional<PushLog> push_log_;
  bool push_log_failed_ = false;

  std::thread thread_;  // Last: it uses everything above.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_SERVICE_SHARD_ENGINE_H_
