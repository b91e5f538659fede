#ifndef SLIPSTREAM_TESTS_WORKER_COMPUTE_TRAINING_H_
#define SLIPSTREAM_TESTS_WORKER_COMPUTE_TRAINING_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "common/model/net_shapes.h"
#include "tests/worker/compute/random_batch.h"
#include "worker/compute/plan.h"
#include "worker/model/initial_values.h"

namespace slipstream {

inline NetShapes InferredShapes(const ModelSpec& model) {
  auto shapes = InferShapes(model);
  const auto* error = std::get_if<ShapeError>(&shapes);
  EXPECT_EQ(error, nullptr) << error->message;
  return std::get<NetShapes>(std::move(shapes));
}

/// Returns a plan with the net's initial values.
inline std::unique_ptr<Plan> PrepareWithWeights(Device& device, const ModelSpec& model,
                                                const PlanOptions& options) {
  absl::StatusOr<std::unique_ptr<Plan>> plan = device.Prepare(model, options);
  EXPECT_TRUE(plan.ok()) << plan.status().ToString();
  // If Prepare failed, value() below ends this test and not the program.
  const NetShapes shapes = InferredShapes(model);
  FillInitialValues(shapes.layout, 1, plan.value()->weights_host(), shapes.normal_weights);
  plan.value()->WeightsArrived({0, shapes.layout.parameters()});
  return std::move(plan).value();
}

struct Step {
  StepResult result;
  std::vector<float> gradients;
};

inline Step RunStep(Plan& plan, const Batch& batch, GradientListener* listener = nullptr) {
  const absl::Status started = plan.StartStep(batch, listener);
  EXPECT_TRUE(started.ok()) << started.ToString();
  const absl::StatusOr<StepResult> result = plan.FinishStep();
  EXPECT_TRUE(result.ok()) << result.status().ToString();
  const std::span<const float> gradients = plan.gradients_host();
  return {result.value(), {gradients.begin(), gradients.end()}};
}

/// Makes a step of plain gradient descent, as a server would with one worker.
inline void Descend(Plan& plan, std::span<const float> gradients, float rate) {
  const std::span<float> weights = plan.weights_host();
  for (size_t i = 0; i < weights.size(); ++i) weights[i] -= rate * gradients[i];
  plan.WeightsArrived({0, weights.size()});
}

inline float LargestMagnitude(std::span<const float> values) {
  float largest = 0;
  for (const float value : values) largest = std::max(largest, std::abs(value));
  return largest;
}

/// Expects each tensor's gradients to agree within `tolerance` times the tensor's largest gradient.
inline void ExpectGradientsNear(const TensorLayout& layout, std::span<const float> actual,
                                std::span<const float> expected, float tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  for (const Tensor& tensor : layout.tensors()) {
    const std::span<const float> want = expected.subspan(tensor.offset, tensor.size());
    const std::span<const float> have = actual.subspan(tensor.offset, tensor.size());
    const float allowed = tolerance * (LargestMagnitude(want) + 1e-6f);
    for (size_t i = 0; i < want.size(); ++i) {
      ASSERT_NEAR(have[i], want[i], allowed) << tensor.name << "[" << i << "]";
    }
  }
}

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_WORKER_COMPUTE_TRAINING_H_
