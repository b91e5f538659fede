#ifndef SLIPSTREAM_SERVER_SERVICE_SHARD_H_
#define SLIPSTREAM_SERVER_SERVICE_SHARD_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/process/memory_bytes.h"
#include "common/protocol/shard_messages.h"
#include "common/run/run_spec.h"
#include "server/core/coordinator_orders.h"
#include "server/core/shard_machine.h"
#include "server/service/push_assembly.h"
#include "server/service/shard_job.h"
#include "server/service/update_draft.h"
#include "server/service/update_path.h"
#include "server/storage/buffer_pool.h"

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

/// An answer on its way to the call that waits for it.
struct Delivery {
  CallId call{};

  /// Of a pull, perhaps a refusal.
  absl::StatusOr<Answer> answer;

  /// A gradient computed from the weights will come from this worker.
  std::optional<WorkerId> trainer;
};

/// What came of an event.
struct ShardResult {
  absl::InlinedVector<Delivery, 1> deliveries;

  /// Of a push that has become complete.
  std::optional<PushRecord> record;
};

/// What is said at the header of a push.
struct BegunPush {
  /// Nothing: its payload is wanted, and exactly one of FinishPush and AbandonPush has to follow.
  std::optional<PushReply> refusal;

  /// Wanted or not, as PushAdmission has it.
  bool is_of_member = false;

  /// Of a push that is wanted: its name, and the draft of the update that it will probably cause;
  /// null if none was begun.
  PushId push{};
  std::shared_ptr<UpdateDraft> draft;
};

/// One shard but for the lock, the thread and the clock: its machine, and the numbers that this
/// decides about. Payloads, jobs and answers are what the machine named; nothing is decided here.
///
/// Jobs run one after another in the order of decisions. Whoever takes one runs it without keeping
/// other events waiting, and brings it back.
///
/// Not thread-safe: one owner, which serialises calls; but a job that was taken may run meanwhile.
class Shard {
 public:
  struct Options {
    ShardId shard{};
    RunSpec run;

    /// What the machine can spare, in bytes; a model that needs more is refused.
    std::function<uint64_t()> memory_available = AvailableMemoryBytes;
  };

  explicit Shard(const Options& options);

  const ShardMachine& machine() const { return machine_; }

  /// Goes on with a state that the machine has had, all of whose calls and payloads are here.
  void Restore(ShardState state) { machine_.Restore(std::move(state)); }

  /// Orders older than those before have no effect.
  ShardResult OnOrders(const ServerOrders& orders);

  void OnCoordinatorAsked() { machine_.OnCoordinatorAsked(); }
  void OnCoordinatorAnswered() { machine_.OnCoordinatorAnswered(); }

  /// Why this shard cannot take part in the run; empty if nothing keeps it.
  const std::string& failure() const { return failure_; }

  /// There is memory for the gradients of so many members; 0 while the model is not known.
  uint32_t members_max() const { return members_max_; }

  /// A buffer for the initial weights, or why they are not taken from this client.
  absl::StatusOr<std::shared_ptr<FloatBuffer>> BeginInitialize(const InitializeHeader& header);

  /// Takes the weights only if they are put in place, and of a push what is kept: what is left is
  /// the caller's to free, as that takes a while.
  absl::Status FinishInitialize(const InitializeHeader& header, Weights& weights);

  ShardResult Pull(CallId call, const PullRequest& request);

  /// A pull of this reader that got an answer has sent it, or its call is gone.
  ShardResult FinishPull(const Reader& reader) { return Absorb(machine_.OnPullDone(reader)); }

  BegunPush BeginPush(const PushHeader& header);
  ShardResult FinishPush(CallId call, PushAssembly& push);
  void AbandonPush(const PushAssembly& push);

  /// True if the call was waiting; it waits no more and gets no answer.
  bool Cancel(CallId call) { return machine_.OnCancelled(call); }

  /// A job that its taker runs.
  class Job {
   public:
    /// The initial weights, or those of an update.
    bool makes_weights() const { return version_.has_value() || job_.initial.has_value(); }

    /// Once.
    void Run() { made_ = std::move(job_).Run(*path_); }

   private:
    friend class Shard;
    Job(ShardJob job, UpdatePath& path);

    ShardJob job_;
    UpdatePath* path_;
    uint64_t bytes_;                  // Of its payloads.
    std::optional<Version> version_;  // That it makes; of initial weights, none.
    std::optional<Weights> made_;
  };

  /// A job waits, and none is under way.
  bool has_job() const { return !jobs_.empty() && !is_running_; }
  bool is_running() const { return is_running_; }

  /// It is the only one, and takes no longer than waking a thread.
  bool has_short_job() const { return has_job() && jobs_.size() == 1 && jobs_.front().is_short(); }

  /// REQUIRES: has_job().
  Job TakeJob();

  /// REQUIRES: it was run.
  ShardResult FinishJob(Job job);

  /// Of the version published last; null before the first.
  const Weights& weights() const { return published_; }

  /// Payloads kept until they are folded.
  size_t payloads_held() const { return held_.size(); }

  /// Set once, when the model is known; null before. To be used by others for what is thread-safe
  /// in it alone.
  UpdatePath* path() { return path_.get(); }
  const UpdatePath* path() const { return path_.get(); }

 private:
  /// Makes room for the model; says why there is none, or nothing.
  std::string MakePath(const ModelOrders& model);

  /// Queues what the output orders, and fills the answers with numbers.
  ShardResult Absorb(ShardOutput output);
  Delivery Deliver(ShardAnswer answer);

  /// Lets go of weights that no gradient on its way was computed from.
  void ForgetBases();

  // Constant after construction.
  const Options options_;
  const bool keeps_bases_;

  ShardMachine machine_;
  std::string failure_;
  uint32_t members_max_ = 0;
  Weights published_;

  // The weights of the versions that the machine's BasesKept names, where compensation needs them.
  std::map<Version, Weights> bases_;
  std::map<PushId, PushPayload> held_;
  std::deque<ShardJob> jobs_;
  bool is_running_ = false;

  // Its numbers belong to whoever runs a job, and while nobody does, to the owner.
  std::unique_ptr<UpdatePath> path_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_SERVICE_SHARD_H_
