#include "deploy/lab/compute_lane.h"

#include <algorithm>
#include <utility>

#include "worker/compute/cpu/cpu_device.h"
#include "worker/training/nonfinite_steps.h"
#include "worker/training/test_measures.h"

namespace slipstream {

absl::StatusOr<std::unique_ptr<ComputeLane>> ComputeLane::Make(const RunSpec& run,
                                                               const DataSplits& data) {
  std::unique_ptr<Device> device = NewCpuDevice();
  absl::StatusOr<std::unique_ptr<Plan>> plan =
      device->Prepare(run.model, {.batch_size_max = run.training.batch_size,
                                  .seed = run.seed,
                                  .precision = run.compute.precision});
  if (!plan.ok()) return plan.status();
  return std::unique_ptr<ComputeLane>(
      new ComputeLane(run, data, std::move(device), *std::move(plan)));
}

ComputeLane::ComputeLane(const RunSpec& run, const DataSplits& data, std::unique_ptr<Device> device,
                         std::unique_ptr<Plan> plan)
    : run_(run),
      data_(data),
      clip_(run.optimizer),
      device_(std::move(device)),
      plan_(std::move(plan)),
      feed_(data.train, run.training.batch_size, run.seed, *plan_) {}

ComputedGradient ComputeLane::Compute(const ShardWeights& weights, const ShardMap& map,
                                      uint64_t batch) {
  for (uint32_t i = 0; i < weights.size(); ++i) {
    const ParameterRange range = map.range(ShardId{i});
    std::ranges::copy(weights[i]->values(), plan_->weights_host().begin() + range.begin);
  }
  plan_->WeightsArrived({0, map.parameters()});
  ComputedGradient made = Step(batch);
  if (!made.step.ok()) return made;
  clip_.ClipValues(plan_->gradients_host());
  made.nonfinite = NonfinitePart(made.step->loss, gradient(), run_.wire.push_codec);
  if (!made.nonfinite) made.clip = clip_.FactorOf(gradient());
  return made;
}

ComputedGradient ComputeLane::ComputeLocally(std::span<const float> weights, uint64_t batch) {
  std::ranges::copy(weights, plan_->weights_host().begin());
  plan_->WeightsArrived({0, weights.size()});
  ComputedGradient made = Step(batch);
  if (made.step.ok()) made.nonfinite = NonfinitePart(made.step->loss, gradient());
  return made;
}

ComputedGradient ComputeLane::Step(uint64_t batch) {
  const Batch examples = feed_.Take(batch);
  ComputedGradient made;
  made.examples = static_cast<uint32_t>(examples.CountOf(data_.train.shape.elements()));
  if (absl::Status started = plan_->StartStep(examples, nullptr); !started.ok()) {
    made.step = started;
  } else {
    made.step = plan_->FinishStep();
  }
  return made;
}

absl::StatusOr<TestMeasures> ComputeLane::Measure(std::span<const float> weights) {
  if (test_plan_ == nullptr) {
    auto plan = device_->Prepare(run_.model, {.batch_size_max = kTestBatchSize, .trains = false});
    if (!plan.ok()) return plan.status();
    test_plan_ = *std::move(plan);
  }
  std::ranges::copy(weights, test_plan_->weights_host().begin());
  test_plan_->WeightsArrived({0, weights.size()});
  return MeasureOnTest(*test_plan_, data_.test, [](size_t) { return true; });
}

absl::StatusOr<ComputeLanes> MakeComputeLanes(const RunSpec& run, const DataSplits& data,
                                              uint32_t count) {
  ComputeLanes lanes;
  for (uint32_t i = 0; i < count; ++i) {
    absl::StatusOr<std::unique_ptr<ComputeLane>> lane = ComputeLane::Make(run, data);
    if (!lane.ok()) return lane.status();
    lanes.push_back(*std::move(lane));
  }
  return lanes;
}

}  // namespace slipstream
