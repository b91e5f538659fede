#include <gtest/gtest.h>

#include <memory>

#include "tests/worker/algorithm/scalar_model.h"
#include "worker/algorithm/worker_algorithm.h"

namespace slipstream {
namespace {

using Arena = LocalModel::Arena;

TEST(GradientTest, LeavesTheModelAlone) {
  const std::unique_ptr<const WorkerAlgorithm> gradient =
      MakeWorkerAlgorithm(AlgorithmKind::kGradient);
  ScalarModel model;
  model[Arena::kWeights] = 2;
  model[Arena::kGradient] = 3;

  gradient->OnGradient(model, {.number = 0, .learning_rate = 0.5});
  gradient->BeforePush(model, {0, 1});

  EXPECT_EQ(model[Arena::kWeights], 2);
  EXPECT_EQ(model[Arena::kGradient], 3);
}

}  // namespace
}  // namespace slipstream
