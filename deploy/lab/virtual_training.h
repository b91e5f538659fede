#ifndef SLIPSTREAM_DEPLOY_LAB_VIRTUAL_TRAINING_H_
#define SLIPSTREAM_DEPLOY_LAB_VIRTUAL_TRAINING_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/layout/shard_map.h"
#include "common/protocol/batch_ranges.h"
#include "common/protocol/shard_messages.h"
#include "common/wire/values_codec.h"
#include "deploy/lab/compute_lane.h"
#include "deploy/lab/compute_pool.h"
#include "deploy/lab/lab_context.h"
#include "deploy/lab/local_arenas.h"
#include "deploy/lab/virtual_calls.h"
#include "deploy/lab/virtual_newest.h"
#include "deploy/lab/virtual_process.h"
#include "deploy/lab/virtual_units.h"
#include "worker/client/push_encoders.h"
#include "worker/core/session_flow.h"
#include "worker/core/unit_queue.h"
#include "worker/core/worker_core.h"
#include "worker/core/worker_session.h"
#include "worker/training/local_steps.h"
#include "worker/training/nonfinite_steps.h"
#include "worker/training/step_figures.h"

namespace slipstream {

/// Trains in virtual time, as the worker's session decides, with real gradients.
///
/// Calls to a shard are made one after another, in the order in which the flow of control asked for
/// them. A slot holds references to the versions that it computes from, and no weights of its own
/// unless it takes local steps.
///
/// Not thread-safe: one owner, the thread of the event queue.
class VirtualTraining final : public SessionFlow {
 public:
  /// Called once, with why the worker cannot go on, or when nothing is left to do. `ends_run`: no
  /// other worker could go on either.
  using OnEnd = std::function<void(const absl::Status& status, bool ends_run)>;

  /// All arguments must outlive the object, which must outlive the process.
  VirtualTraining(const LabContext& lab, VirtualProcess& process, const Identity& identity,
                  const ShardMap& map, OnEnd on_end);

  /// Drops what is being computed.
  ~VirtualTraining() override;

  void Start() { TakeTurn(); }

  /// Takes the news of a heartbeat: whether work ends, and the number of mini-batches of the next
  /// pushes.
  void OnOrders(bool work_ends, uint64_t steps);
  void OnCoordinatorChanged() { units_.OnCoordinatorChanged(); }

  const std::vector<UnitProgress>& progress() const { return progress_; }

  /// Returns its figures, whose times are virtual.
  StepFigures::Figures Figures() const { return figures_.Read(process_.now()); }

 private:
  /// A gradient of one mini-batch, cut into the shards' parts.
  struct Gradient {
    ComputedGradient computed;
    std::vector<ReceivedValues::Buffer> parts;
  };

  struct Slot {
    ShardWeights weights;
    StepFigures::Step step;
    std::vector<LaneTimes> lanes;  // Of its last push, by shard.
  };

  struct Local {
    explicit Local(size_t parameters) : arenas(parameters) {}

    LocalArenas arenas;
    std::unique_ptr<LocalSteps> steps;
    uint32_t examples = 0;  // Of the steps since the last push.
    float loss = 0;
  };

  bool keeps_weights() const { return local_ != nullptr && local_->steps->keeps_weights(); }
  bool lands_apart() const { return local_ != nullptr && !local_->steps->landing().empty(); }

  // See SessionFlow.
  void HeedOrders() override;
  void PullFrom(uint32_t slot, const std::vector<WorkerCore::ShardPull>& pulls) override;
  void PushNothing(uint32_t slot, const std::vector<ShardId>& shards, bool pull) override;
  void Compute() override;
  void Ask(const WorkWish& wish) override { units_.Ask(wish); }
  std::optional<WorkNews> TakeNews() override { return units_.Take(); }
  bool FollowNewest() override { return newest_->Follow(); }
  absl::Status TakeNewest(uint32_t slot) override;
  void RestNewest() override { newest_->Rest(); }
  void Finish() override;
  void Fail(const absl::Status& status) override;

  // A gradient of one mini-batch.
  void ComputeGradient();

  void OnGradient(const std::shared_ptr<Gradient>& gradient);

  // Local steps.
  void BeginLocalSteps();
  void StepLocally(uint64_t taken);
  void OnLocalGradient(uint64_t taken, const ComputedGradient& computed);
  void TakeLocalStep(uint64_t taken, const ComputedGradient& computed);
  void Land(const std::function<void()>& then);
  void PushLocalSteps();

  StepFigures::Step BeginStep(uint64_t batch);
  void EndStep(const ComputedGradient& computed, StepFigures::Step& step);
  absl::Duration TimeOf(uint64_t batch);

  /// Notes a step without finite values. Returns whether the worker goes on.
  bool NoteNonfinite(uint64_t batch, const std::string& what);
  void NoteHealthy();

  /// Skips the batches of the slot's aborted push, once older ones are answered.
  void LeaveOut();

  /// Pushes the shards' parts, which are taken from `parts`.
  void PushParts(std::vector<ReceivedValues::Buffer>& parts, const PushTrailer& trailer);

  /// Returns the shard's part of a push as it travels: encoded, if the run has a codec.
  VirtualCalls::Payload PayloadOf(ShardId shard, ReceivedValues::Buffer part);

  // Calls.
  void OnAnswer(ShardId shard, uint32_t slot, bool is_push, const PushHeader& header,
                const Answer& answer, const LaneTimes& times);
  void TakeWeights(ShardId shard, uint32_t slot, const Answer& answer);

  const LabContext& lab_;
  VirtualProcess& process_;
  const ShardMap map_;
  const OnEnd on_end_;
  std::vector<UnitProgress> progress_;
  VirtualUnits units_;
  std::vector<Slot> slots_;
  VirtualCalls shards_;
  std::optional<VirtualNewest> newest_;  // With free lanes.
  PushEncoders encoders_;
  std::unique_ptr<Local> local_;  // Null without local steps.
  StepFigures figures_;
  NonfiniteSteps nonfinite_;
  const GradientClip clip_;
  const WorkerId worker_;
  std::shared_ptr<ComputePool::Job> job_;  // Null if nothing is being computed.
  absl::Time turn_began_;
  uint64_t steps_begun_ = 0;
  bool work_ends_ = false;
  uint64_t steps_ordered_ = 0;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_LAB_VIRTUAL_TRAINING_H_
