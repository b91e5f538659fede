#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <numbers>
#include <span>
#include <utility>
#include <vector>

#include "server/data_plane/shard_job.h"
#include "server/data_plane/training_state.h"
#include "tests/support/specs.h"

namespace slipstream {
namespace {

/// Returns |θ| after `updates` steps on the quadratic θ²/2, of which each gradient was computed
/// from the weights of `delay` updates before. θ begins at 1.
double After(uint64_t updates, size_t delay, double learning_rate) {
  const std::unique_ptr<TrainingState> state =
      TrainingState::TryMake(OptimizerSpec(), LayoutOf({1}), {0, 1}, false);
  std::shared_ptr<FloatBuffer> first = state->NewWeights();
  first->values().front() = 1;
  state->SetInitialWeights(std::move(first));
  std::deque<float> weights(delay + 1, 1.0f);  // The newest last; those before the run are 1.
  for (uint64_t update = 0; update < updates && std::abs(weights.back()) < 1e6f; ++update) {
    const float gradient = weights.front();
    FoldStep step = {.fold = {.weight = 1, .first = true}, .payload = {}};
    Segments segments = {std::as_bytes(std::span(&gradient, 1))};
    step.payload.pieces.push_back(
        std::make_shared<const ReceivedValues>(std::vector<grpc::Slice>(), std::move(segments)));
    UpdateJob job;
    job.folds.push_back(std::move(step));
    job.update = {.from = Version{update},
                  .to = Version{update + 1},
                  .learning_rate = static_cast<float>(learning_rate)};
    weights.push_back(state->Run(job).value()->values().front());
    weights.pop_front();
  }
  double largest = 0;
  for (const float weight : weights) largest = std::max(largest, double{std::abs(weight)});
  return largest;
}

/// SGD with the constant delay τ on the curvature h is stable if and only if αh < 2 sin(π / (2(2τ +
/// 1))): the root of z^(τ+1) − z^τ + αh = 0 that leaves the unit circle first does so there.
TEST(ConstantDelayTest, AQuadraticIsStableUpToThePublishedRate) {
  for (const size_t delay : {0, 1, 2, 4, 8, 30}) {
    SCOPED_TRACE(testing::Message() << "delay " << delay);
    const double bound =
        2 * std::sin(std::numbers::pi / (2 * (2 * static_cast<double>(delay) + 1)));
    const uint64_t updates = 2000 + 2000 * delay;

    EXPECT_LT(After(updates, delay, 0.98 * bound), 0.1);
    EXPECT_GT(After(updates, delay, 1.02 * bound), 10);
  }
}

}  // namespace
}  // namespace slipstream
