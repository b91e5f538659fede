#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "tests/worker/algorithm/scalar_model.h"
#include "worker/algorithm/worker_algorithm.h"
#include "worker/core/fragments.h"

namespace slipstream {
namespace {

using Arena = LocalModel::Arena;

constexpr ParameterRange kAll = {0, 1};

std::unique_ptr<const WorkerAlgorithm> MakeStreaming(double mixing) {
  AlgorithmOptions options = {.workers = 2, .fragments = 2};
  options.parameters["mixing"] = mixing;
  return MakeWorkerAlgorithm(AlgorithmKind::kDiloco, options);
}

/// A layer of one parameter, which begins at 1 on two workers and on its server. The server follows
/// gradient descent with a rate of 2.
struct Layer {
  Layer() {
    for (ScalarModel& worker : workers) {
      for (const Arena arena : {Arena::kWeights, Arena::kAnchor, Arena::kLanding})
        worker[arena] = 1;
    }
  }

  void Exchange(const WorkerAlgorithm& algorithm) {
    float sum = 0;
    for (ScalarModel& worker : workers) {
      algorithm.BeforePush(worker, kAll);
      sum += worker[Arena::kAnchor];
    }
    server -= 2 * sum / 2;
    for (ScalarModel& worker : workers) {
      worker[Arena::kLanding] = server;
      algorithm.OnLanding(worker, kAll, true);
    }
  }

  ScalarModel workers[2];
  float server = 1;
};

// torchft's tests publish these histories of a model of two layers, each a fragment: gradients of
// 2, inner steps at a rate of 1, an exchange every 6 steps. There, the first layer leaves first.
TEST(StreamingDilocoTest, GivesTheHistoriesOfBothLayersThatTorchftPublishes) {
  const std::unique_ptr<const WorkerAlgorithm> diloco = MakeStreaming(0);
  const Fragments fragments(2, 0);
  constexpr uint64_t kSteps = 6;
  Layer layers[2];  // By shard: shard 0 leaves last.
  std::vector<ShardId> unsent;
  std::vector<float> histories[2] = {{1}, {1}};

  for (uint64_t step = 0; step < 12; ++step) {
    for (Layer& layer : layers) {
      for (ScalarModel& worker : layer.workers) {
        worker[Arena::kGradient] = 2;
        diloco->OnGradient(worker, {.number = step % kSteps, .learning_rate = 1});
      }
    }
    const uint64_t taken = step % kSteps + 1;
    if (taken == 1) unsent = {ShardId{0}, ShardId{1}};
    for (const ShardId shard : fragments.LeavingAfter(taken, kSteps, unsent)) {
      layers[Value(shard)].Exchange(*diloco);
      std::erase(unsent, shard);
    }
    if (taken == kSteps) layers[0].Exchange(*diloco);
    for (int shard = 0; shard < 2; ++shard) {
      histories[shard].push_back(layers[shard].workers[1][Arena::kWeights]);
    }
  }

  EXPECT_EQ(histories[1],
            (std::vector<float>{1, -1, -3, -11, -13, -15, -17, -19, -21, -35, -37, -39, -41}));
  EXPECT_EQ(histories[0],
            (std::vector<float>{1, -1, -3, -5, -7, -9, -23, -25, -27, -29, -31, -33, -47}));
}

TEST(StreamingDilocoTest, KeepsAShareOfTheStepsTakenWhileTheFragmentWasOnTheWay) {
  const std::unique_ptr<const WorkerAlgorithm> diloco = MakeStreaming(0.25);
  ScalarModel model;
  model[Arena::kWeights] = 6;
  model[Arena::kAnchor] = 10;

  diloco->BeforePush(model, kAll);
  EXPECT_EQ(model[Arena::kAnchor], 4);
  model[Arena::kWeights] = 4;  // Steps went on.
  model[Arena::kLanding] = 8;
  diloco->OnLanding(model, kAll, true);

  EXPECT_EQ(model[Arena::kWeights], 0.25f * 4 + 0.75f * 8);
  EXPECT_EQ(model[Arena::kAnchor], 8);
}

TEST(StreamingDilocoTest, WeightsThatAnswerNoPushCostNoStep) {
  const std::unique_ptr<const WorkerAlgorithm> diloco = MakeStreaming(0);
  ScalarModel model;
  model[Arena::kWeights] = 6;
  model[Arena::kAnchor] = 10;
  model[Arena::kLanding] = 8;

  diloco->OnLanding(model, kAll, false);
  diloco->BeforePush(model, kAll);

  EXPECT_EQ(model[Arena::kAnchor], 4);
}

}  // namespace
}  // namespace slipstream
