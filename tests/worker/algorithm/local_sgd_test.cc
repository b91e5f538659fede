#include <gtest/gtest.h>

#include <memory>

#include "tests/worker/algorithm/scalar_model.h"
#include "worker/algorithm/worker_algorithm.h"

namespace slipstream {
namespace {

using Arena = LocalModel::Arena;

// f(w) = w²/2 has the gradient w, so three steps at rate 0.5 lead from 8 over 4 and 2 to 1.
TEST(LocalSgdTest, PushesHowFarItsStepsHaveLed) {
  const std::unique_ptr<const WorkerAlgorithm> local_sgd =
      MakeWorkerAlgorithm(AlgorithmKind::kLocalSgd);
  ScalarModel model;
  model[Arena::kWeights] = 8;

  local_sgd->BeforeSteps(model);
  for (uint64_t step = 0; step < 3; ++step) {
    model[Arena::kGradient] = model[Arena::kWeights];
    local_sgd->OnGradient(model, {.number = step, .learning_rate = 0.5});
  }
  EXPECT_EQ(model[Arena::kWeights], 1);
  local_sgd->BeforePush(model, {0, 1});

  EXPECT_EQ(model[Arena::kGradient], 7);
}

TEST(LocalSgdTest, StartsAnewFromWhatHasCome) {
  const std::unique_ptr<const WorkerAlgorithm> local_sgd =
      MakeWorkerAlgorithm(AlgorithmKind::kLocalSgd);
  ScalarModel model;
  for (const float pulled : {8.0f, 100.0f}) {
    model[Arena::kWeights] = pulled;
    model[Arena::kGradient] = 4;
    local_sgd->BeforeSteps(model);
    local_sgd->OnGradient(model, {.number = 0, .learning_rate = 0.25});
    local_sgd->BeforePush(model, {0, 1});

    EXPECT_EQ(model[Arena::kGradient], 1) << "from " << pulled;
  }
}

}  // namespace
}  // namespace slipstream
