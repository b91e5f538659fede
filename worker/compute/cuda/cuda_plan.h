#ifndef SLIPSTREAM_WORKER_COMPUTE_CUDA_CUDA_PLAN_H_
#define SLIPSTREAM_WORKER_COMPUTE_CUDA_CUDA_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "worker/compute/batch_check.h"
#include "worker/compute/batch_programs.h"
#include "worker/compute/cuda/arena_map.h"
#include "worker/compute/cuda/batch_block.h"
#include "worker/compute/cuda/batch_upload.h"
#include "worker/compute/cuda/group_gradients.h"
#include "worker/compute/cuda/kept_examples.h"
#include "worker/compute/cuda/pass_graphs.h"
#include "worker/compute/cuda/pass_watch.h"
#include "worker/compute/cuda/plan_member.h"
#include "worker/compute/cuda/plan_memory.h"
#include "worker/compute/cuda/weights_upload.h"
#include "worker/compute/net_layers.h"
#include "worker/compute/plan.h"
#include "worker/compute/weights_gate.h"

namespace slipstream::cuda {

/// The devices that one plan computes on; each takes a part of every batch.
struct PlanDevices {
  std::vector<int> indices;  // At least one.

  /// Whether NCCL sums the gradients; required for several devices, and possible with one.
  bool are_grouped = false;

  /// See GroupGradients::New; null if no group computes on these devices.
  std::shared_ptr<Mutex> launching;

  /// The examples that the plans keep, shared by the device and all its plans.
  std::shared_ptr<KeptExamples> kept = std::make_shared<KeptExamples>();

  /// Returns the lock that a plan holds while it allocates, captures or frees.
  std::unique_ptr<MutexLock> KeepApart() const {
    return launching == nullptr ? nullptr : std::make_unique<MutexLock>(*launching);
  }
};

/// A net on one device, or on several that share each batch. The host's arenas are pinned. Weights
/// are sent to the devices as they arrive, on separate streams. Gradients are sent to the host
/// during the backward pass; those of several devices as their sum.
///
/// StartStep launches the step: at once if all weights are present, else part by part, waiting for
/// the weights as they arrive. FinishStep waits for the devices, reports ranges as they reach the
/// host, and returns the result. The ranges of several devices are summed and sent only during
/// FinishStep.
class CudaPlan final : public Plan {
 public:
  /// Fails like Device::Prepare.
  static absl::StatusOr<std::unique_ptr<Plan>> New(const PlanDevices& devices,
                                                   const NetLayers& layers, const NetSizes& net,
                                                   const PlanOptions& options);

  ~CudaPlan() override;

  std::span<float> weights_host() override { return host_.weights.span(); }
  void WeightsArrived(ParameterRange range) override;
  void ExpectWeights() override;
  void RevokeWeights(ParameterRange range) override;
  void AbandonWeights() override { gate_.Abandon(); }
  std::span<float> gradients_host() override { return host_.gradients; }
  bool KeepExamples(const ExampleTable& table) override;
  std::optional<BatchSpace> NewBatch(uint32_t count) override;
  void OfferBatch() override { batches_->Offer(); }
  absl::Status StartStep(const Batch& batch, GradientListener* listener) override;
  absl::StatusOr<StepResult> FinishStep() override;
  absl::StatusOr<StepResult> Evaluate(const Batch& batch) override;

 private:
  struct Started {
    const PassGraphs* graphs = nullptr;
    GradientListener* listener = nullptr;
    uint32_t count = 0;
  };

  CudaPlan(const PlanDevices& devices, const NetSizes& net, ArenaMap map,
           const PlanOptions& options);

  absl::Status Prepare(const NetLayers& layers);

  /// Leaves all memory on the devices to the end of the process.
  void Abandon();

  /// Connects a group's devices, by a first sum over the gradients that exist once a pass was
  /// captured.
  absl::Status ConnectDevices();
  absl::StatusOr<const PassGraphs*> GraphsFor(uint32_t count, bool training);
  absl::Status Capture(uint32_t count, bool training);
  BatchPrograms<PassGraphs>& GraphsOf(bool training) { return training ? training_ : evaluating_; }

  /// Launches a step. CANCELLED if the step will not get its weights.
  absl::Status Launch(const PassGraphs& graphs);

  /// Gives up the sums unless the step goes on: sums with a device that has failed never complete.
  void EndSumsUnless(bool goes_on);

  absl::StatusOr<StepResult> Await(const Started& started);
  absl::Status AwaitGradients(const Started& started);
  StepResult ResultOf(uint32_t count) const;

  PassParts Parts() const {
    return {net_, map_, part_block_, host_, members_, devices_.are_grouped};
  }

  // Constant after construction.
  const PlanDevices devices_;
  const NetSizes net_;
  const PlanOptions options_;
  const ArenaMap map_;
  const BatchBlock block_;
  const BatchBlock part_block_;  // Layout of a device's part.

  std::vector<PlanMember> members_;
  HostMemory host_;
  std::unique_ptr<GroupGradients> group_;  // Null unless devices are grouped and train.
  std::unique_ptr<BatchUpload> batches_;
  BatchPrograms<PassGraphs> training_;
  BatchPrograms<PassGraphs> evaluating_;

  WeightsGate gate_;
  WeightsUpload upload_{members_, map_, host_};
  PassWatch watch_{members_};
  std::optional<Started> started_;
};

}  // namespace slipstream::cuda

#endif  // SLIPSTREAM_WORKER_COMPUTE_CUDA_CUDA_PLAN_H_
