#ifndef SLIPSTREAM_DEPLOY_LAB_COMPUTE_LANE_H_
#define SLIPSTREAM_DEPLOY_LAB_COMPUTE_LANE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/layout/shard_map.h"
#include "common/settings/run_spec.h"
#include "server/storage/buffer_pool.h"
#include "worker/compute/plan.h"
#include "worker/data/dataset.h"
#include "worker/training/batch_feed.h"
#include "worker/training/gradient_clip.h"
#include "worker/training/measures.h"

namespace slipstream {

/// The weights of a model, as its shards have published them: those of each shard in its order.
using ShardWeights = std::vector<Weights>;

/// The result of one mini-batch.
struct ComputedGradient {
  absl::StatusOr<StepResult> step = StepResult();
  uint32_t examples = 0;

  /// The part of it that is not finite, as NonfinitePart says. It must not be pushed then.
  std::optional<std::string> nonfinite;

  /// The factor by which shards clip it.
  float clip = 1;
};

/// Computes gradients of one net on one thread, from whichever weights it is given. Many virtual
/// workers share a lane, as a plan's results depend on nothing but its inputs.
///
/// Not thread-safe: one owner.
class ComputeLane {
 public:
  /// `data` must outlive the lane. Fails as Device::Prepare.
  static absl::StatusOr<std::unique_ptr<ComputeLane>> Make(const RunSpec& run,
                                                           const DataSplits& data);

  /// Computes the gradient of mini-batch `batch` from these weights. Each value is clipped, and the
  /// gradient's norm is not: `clip` of the result says by which factor it is to be. The values are
  /// gradient() until the next call.
  ComputedGradient Compute(const ShardWeights& weights, const ShardMap& map, uint64_t batch);

  /// The same from weights in one piece, without clipping.
  ComputedGradient ComputeLocally(std::span<const float> weights, uint64_t batch);

  std::span<const float> gradient() { return plan_->gradients_host(); }

  /// Measures the weights on the test set.
  absl::StatusOr<TestMeasures> Measure(std::span<const float> weights);

 private:
  ComputeLane(const RunSpec& run, const DataSplits& data, std::unique_ptr<Device> device,
              std::unique_ptr<Plan> plan);

  ComputedGradient Step(uint64_t batch);

  // Constant after construction.
  const RunSpec run_;
  const DataSplits& data_;
  const GradientClip clip_;

  const std::unique_ptr<Device> device_;
  const std::unique_ptr<Plan> plan_;
  std::unique_ptr<Plan> test_plan_;  // Made when it is first needed.
  BatchFeed feed_;
};

/// The lanes of a pool, one for each thread.
using ComputeLanes = std::vector<std::unique_ptr<ComputeLane>>;

/// Makes so many lanes. Fails as ComputeLane::Make.
absl::StatusOr<ComputeLanes> MakeComputeLanes(const RunSpec& run, const DataSplits& data,
                                              uint32_t count);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_LAB_COMPUTE_LANE_H_
