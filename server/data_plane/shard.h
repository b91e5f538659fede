#ifndef SLIPSTREAM_SERVER_DATA_PLANE_SHARD_H_
#define SLIPSTREAM_SERVER_DATA_PLANE_SHARD_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/archive.h"
#include "common/base/ids.h"
#include "common/process/process_limits.h"
#include "common/protocol/shard_messages.h"
#include "common/settings/run_spec.h"
#include "server/core/orders.h"
#include "server/core/shard/shard_machine.h"
#include "server/data_plane/push_assembly.h"
#include "server/data_plane/run_start.h"
#include "server/data_plane/shard_event.h"
#include "server/data_plane/shard_job.h"
#include "server/data_plane/shard_recorder.h"
#include "server/data_plane/tensor_checksums.h"
#include "server/data_plane/training_state.h"
#include "server/data_plane/update_draft.h"
#include "server/data_plane/version_changes.h"
#include "server/storage/buffer_pool.h"

namespace slipstream {

/// Returns why a reader is not given the version that it asked for, or not all of it.
absl::Status LaggedError();

/// The answer to a call, on its way to the call: what was decided, and the values.
struct Answer {
  /// The call. May be unset in an answer that is returned to the call itself.
  CallId call{};

  /// Not OK: the call ends with this status, and only `call` is set besides. Shards refuse only
  /// pulls in this way; a push gets a reply.
  absl::Status refusal;

  /// The reply to a push. Set if the call is a push.
  std::optional<PushReply> push;

  /// The header of the weights. Set for a pull, and for a push that asks for weights and is not
  /// refused.
  std::optional<WeightsHeader> header;

  /// Their values, shared with the shard and with other answers, see buffer_pool.h. Null if
  /// `header` says that the reader has them.
  Weights weights;

  // For pulled weights; null for other answers: what makes their trailer, and what makes the
  // changes from the version that the reader holds, if that is kept.
  std::shared_ptr<TensorChecksums> checksums;
  std::shared_ptr<VersionChanges> changes;
  Weights base;

  /// Makes `weights`, see Settle, if these change in place; else null.
  std::shared_ptr<InPlaceVersion> in_place;

  /// The workers that will push a gradient computed from the weights.
  absl::InlinedVector<WorkerId, 1> trainers;

  /// Copies weights that change in place. It may take a while, so no lock should be held.
  void Settle();
};

using Answers = absl::InlinedVector<Answer, 1>;

/// The results of an event.
struct ShardResult {
  Answers answers;

  /// The pulls to end as LAGGED.
  std::vector<CallId> lagged;

  /// The outcome of a push that has become complete.
  std::optional<PushRecord> record;

  /// A save that is complete; null if there is none.
  std::shared_ptr<const ShardSave> save;
};

/// The decision at the header of a push.
struct BegunPush {
  /// The answer if the payload is not wanted. If it is empty, exactly one of FinishPush and
  /// AbandonPush has to follow.
  std::optional<PushReply> refusal;

  /// Set as in PushAdmission, wanted or not.
  bool is_of_member = false;

  /// The name of a wanted push, and the draft of the update that it will probably cause; null if
  /// none was begun.
  PushId push{};
  std::shared_ptr<UpdateDraft> draft;
};

/// One shard without the lock, the thread and the clock: its machine, and the values that the
/// machine decides about. It keeps the payloads, jobs and answers that the machine names, and
/// decides nothing itself.
///
/// Jobs run one after another in the order of decisions; those that add to weights in place run
/// side by side. The caller that takes a job runs it without keeping other events waiting, and
/// brings it back.
///
/// Not thread-safe: one owner, which serialises calls; but a job that was taken may run meanwhile.
class Shard {
 public:
  struct Options {
    ShardId shard{};
    RunSpec run;

    /// How much memory this computer can spare, in bytes. A model that needs more is refused.
    std::function<uint64_t()> memory_available = AvailableMemoryBytes;

    /// Reads the values that take the place of a client's initial weights; null if these count.
    ReadRunStart read_start = nullptr;
  };

  explicit Shard(const Options& options);

  const ShardMachine& machine() const { return machine_; }

  /// Continues with a state that the machine has had. All calls and payloads in it must be here.
  void Restore(ShardState state);

  // The log. All that the shard is told is recorded, in order, and so can be told again: to a shard
  // that has the state of a checkpoint, which then makes the same decisions and the same values,
  // bit for bit. So a process that has ended goes on in another one, in the same generation.

  /// Records all events from now on; `recorder` must outlive the shard. REQUIRES: versions are
  /// made, and no job is unfinished or BeginRedo was called.
  void SetRecorder(ShardRecorder& recorder) { recorder_ = &recorder; }

  /// Names what does not fit in a save that was read from a file: in itself, with the settings, or
  /// with `values`, the number of the shard's values. Empty if the shard can go on from it.
  std::string FaultOf(const ShardSave& saved, uint64_t values) const;

  /// Takes the state and the values of a checkpoint, as they were. `arrays` are those of NewArrays,
  /// filled, and the weights in `saved.bases` are there. Until EndRedo the shard is_returning(),
  /// and the only calls may be Redo, SetRecorder after the last Redo, and those that do not change
  /// anything. REQUIRES: no push and no pull was taken before.
  void BeginRedo(ShardSave saved, ArrayBuffers arrays);

  /// Tells the shard an event that was recorded behind the checkpoint, with the payload of the push
  /// if it is one. Jobs run within the call. DATA_LOSS if no shard in this state records such an
  /// event, or if it is about initial weights, which the log does not have: the shard's state has
  /// no meaning then.
  absl::Status Redo(std::string_view event,
                    std::vector<std::shared_ptr<const ReceivedValues>> payload);

  /// The save that was ordered last by an event told again, without its values, and without the
  /// segment of the log that it began; null if none was. To be called before EndRedo.
  std::shared_ptr<ShardSave> redone_save() const { return redone_save_; }

  /// Ends the calls of the process that recorded the events, and records that. Jobs that it had not
  /// finished wait to be taken. Saves that were ordered are due again if they are not on the disk.
  void EndRedo();

  // The shard's return to what it saved, in a new generation. From BeginReturn to Return it takes
  // neither pushes nor pulls: those that come are told to try again.

  /// Refuses the calls that wait. Those under way end by themselves.
  ShardResult BeginReturn();
  bool is_returning() const { return is_returning_ || is_redoing(); }

  /// Returns whether no push of the old generation is left, and nothing that was decided has yet to
  /// be done.
  bool IsQuiet() const;

  /// Returns whether no call of the old generation is left, so that Return may follow.
  bool MayReturn() const { return IsQuiet() && machine_.pulls_under_way() == 0; }

  /// Returns the shard as it is, to be saved; null if the newest version was saved before, or
  /// cannot be. The pushes of the open round are not part of it. REQUIRES: IsQuiet(), and no
  /// recorder.
  std::shared_ptr<const ShardSave> SaveNow();

  /// Makes memory for the model, if that was not done yet, and returns buffers for what was saved.
  /// Empty if there is not enough memory, or the shard has failed.
  ArrayBuffers NewArrays(const ModelOrders& model);

  /// Goes on in `generation` from a state that was saved. `arrays` are those of NewArrays, filled.
  /// REQUIRES: MayReturn(), and no recorder. OnOrders has to follow, with the orders that made it
  /// return.
  void Return(ShardSave saved, ArrayBuffers arrays, Generation generation);

  /// Orders older than those before have no effect.
  ShardResult OnOrders(const ServerOrders& orders);

  void OnCoordinatorAsked();
  void OnCoordinatorAnswered();

  /// Why this shard cannot take part in the run; empty if it can.
  const std::string& failure() const { return failure_; }

  /// The checkpoint that the run began with, as RunStart::from; empty if with a client's weights.
  const std::string& started_from() const { return started_from_; }

  /// For how many members' gradients there is memory; 0 while the model is not known.
  uint32_t members_max() const { return members_max_; }

  /// Returns a buffer for the initial weights, or why they are not taken from this client.
  absl::StatusOr<std::shared_ptr<FloatBuffer>> BeginInitialize(const InitializeHeader& header);

  /// Takes the weights only if they are put in place, as FinishPush takes of a push only what is
  /// kept. The caller frees the rest, as that takes a while.
  absl::Status FinishInitialize(const InitializeHeader& header, Weights& weights);

  ShardResult Pull(CallId call, const PullRequest& request);

  /// Notes that an answered pull of this reader has sent its answer, or that its call is gone.
  ShardResult FinishPull(CallId call, const Reader& reader);

  BegunPush BeginPush(const PushHeader& header);

  /// Returns the answer to a push that has to be sent again, for this reason. Nothing is noted.
  PushReply NotNow(std::string reason) const;

  /// Takes a push that is complete, and its payload if the machine keeps that. What it causes is
  /// queued as a job.
  ShardResult FinishPush(CallId call, PushAssembly& push);
  void AbandonPush(const PushAssembly& push);

  /// Returns true if the call was waiting. Then it waits no more and gets no answer.
  bool Cancel(CallId call);

  /// Whether a job waits that can run now.
  bool has_job() const {
    if (jobs_.empty() || is_redoing()) return false;
    if (running_ == 0) return true;
    return adds_in_place_ && !jobs_.front().is_initial();
  }
  bool is_running() const { return running_ > 0; }

  /// Whether a single job waits that should run on the thread whose push caused it: it takes no
  /// longer than waking another thread, or may run beside those of other threads.
  bool has_own_job() const {
    return has_job() && jobs_.size() == 1 && (adds_in_place_ || jobs_.front().is_short());
  }

  /// REQUIRES: has_job().
  ShardJob TakeJob();

  /// REQUIRES: the job was run.
  ShardResult FinishJob(ShardJob job);

  /// The weights of the version published last, or those that change in place; null before the
  /// first.
  Weights weights() const { return kept_.empty() ? nullptr : kept_.rbegin()->second.weights; }

  /// The weights that gradients on their way were computed from, where compensation needs them.
  const std::map<Version, Weights>& bases() const { return bases_; }

  /// The number of payloads kept until they are folded.
  size_t payloads_held() const { return held_.size(); }

  /// Set once, when the model is known; null before. Others may use only its thread-safe functions.
  TrainingState* training_state() { return training_state_.get(); }
  const TrainingState* training_state() const { return training_state_.get(); }

 private:
  // The events, as they are recorded and told again, each with its arguments.

  ShardResult TakeOrders(const ServerOrders& orders);
  ShardResult TakePull(CallId call, const PullRequest& request);
  PushAdmission TakePushHeader(const PushHeader& header);
  void TakeDroppedDraft(PushId push);

  /// DATA_LOSS if the payload is wanted and is not there.
  absl::StatusOr<ShardResult> TakePush(CallId call, PushAssembly& push);
  void TakeAbandonedPush(PushId push, const PushHeader& header);
  void TakeProcessEnd(const EndedProcess& end);

  /// Records an event and the arguments that it was taken with.
  template <typename... Arguments>
  void Record(ShardEvent event, const Arguments&... arguments) {
    if (recorder_ != nullptr) recorder_->Record(EncodeEvent(event, arguments...), {});
  }

  /// Takes an event with the arguments that follow in the archive.
  template <typename Result, typename... Arguments>
  absl::Status RedoAs(ArchiveReader& archive, Result (Shard::*take)(Arguments...));
  absl::Status RedoPush(ArchiveReader& archive,
                        std::vector<std::shared_ptr<const ReceivedValues>> payload);
  absl::Status RedoOrders(ArchiveReader& archive);

  /// Returns whether the bytes of this push may be among those that were admitted.
  bool HasTaken(const PushHeader& header) const;
  absl::Status RedoAbandonedPush(ArchiveReader& archive);
  absl::Status RedoPullDone(ArchiveReader& archive);
  absl::Status RedoJob(ArchiveReader& archive);

  /// Takes the first job, runs it and brings it back.
  void DoFirstJob();
  bool is_redoing() const { return redone_from_.has_value(); }

  /// Returns the oldest version from which on all versions up to the newest published one are kept.
  Version OldestWithWeights() const;

  /// Allocates memory for the model. Returns why there is none; empty if there is.
  std::string MakePath(const ModelOrders& model);

  /// Makes the weights those of the newest version, or the initial ones that a grant allowed. Null:
  /// the checkpoint has brought them, unless nobody needs them.
  ShardResult Publish(Version version, Weights weights, uint64_t grant);

  ShardJob TakeFirstJob();

  /// Returns what is to be saved of the shard as it is now, but the newest version's values.
  std::shared_ptr<ShardSave> NewSave();

  /// Queues the work that the output orders, and adds the weights to the answers.
  ShardResult Absorb(ShardOutput output);
  Answer WithValues(ShardAnswer answer) const;

  /// Keeps the weights that a worker was given, while its gradient may come.
  void KeepBase(const ShardAnswer& answer);

  /// Releases weights that no gradient on its way was computed from.
  void ForgetBases();

  // Constant after construction.
  const Options options_;
  const bool keeps_bases_;
  const bool adds_in_place_;

  ShardMachine machine_;
  ShardRecorder* recorder_ = nullptr;  // Null if events are not recorded.
  bool is_returning_ = false;

  // Set from BeginRedo to EndRedo: the version of the checkpoint; and as redone_save() says.
  std::optional<Version> redone_from_;
  std::shared_ptr<ShardSave> redone_save_;
  uint32_t pushes_arriving_ = 0;  // Begun, and neither finished nor abandoned.
  std::string failure_;
  std::optional<StartOfShard> start_;  // Set once the model is known, if it is used.
  std::string started_from_;
  uint32_t members_max_ = 0;

  /// The weights of a version that readers may ask for.
  struct Kept {
    Weights weights;
    std::shared_ptr<TensorChecksums> checksums;
    std::shared_ptr<VersionChanges> changes;
    std::shared_ptr<InPlaceVersion> in_place;  // Null unless the weights change in place.
  };
  Kept NewKept(Weights weights) const;

  // The newest published version is the last. While a log is redone, versions of which the
  // checkpoint has no weights are missing or have null, and the checkpoint's own is there early.
  std::map<Version, Kept> kept_;

  // The weights of the versions that the machine's BasesKept names, where compensation needs them.
  std::map<Version, Weights> bases_;
  std::map<PushId, PushPayload> held_;
  std::deque<ShardJob> jobs_;
  uint32_t running_ = 0;  // The number of jobs that were taken and not brought back.

  // The job that was taken last, while it runs, if it is one that a save counts as unfinished. For
  // saves alone, which there are only where jobs run one after another.
  std::optional<UnfinishedJob> running_job_;

  // The versions made before an older one was: only jobs that run side by side overtake.
  std::map<Version, Weights> made_early_;

  // Its values belong to the threads that run jobs or, while no job runs, to the owner.
  std::unique_ptr<TrainingState> training_state_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_DATA_PLANE_SHARD_H_
