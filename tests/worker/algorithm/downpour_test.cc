#include <gtest/gtest.h>

#include <memory>

#include "tests/worker/algorithm/scalar_model.h"
#include "worker/algorithm/worker_algorithm.h"

namespace slipstream {
namespace {

using Arena = LocalModel::Arena;

// f(w) = w²/2 has the gradient w, so steps at rate 0.5 from 8 on have the gradients 8, 4 and 2.
TEST(DownpourTest, PushesTheSumOfItsStepsGradients) {
  const std::unique_ptr<const WorkerAlgorithm> downpour =
      MakeWorkerAlgorithm(AlgorithmKind::kDownpour);
  ScalarModel model;
  for (const float pulled : {8.0f, 16.0f}) {  // The second sum begins anew.
    model[Arena::kWeights] = pulled;
    for (uint64_t step = 0; step < 3; ++step) {
      model[Arena::kGradient] = model[Arena::kWeights];
      downpour->OnGradient(model, {.number = step, .learning_rate = 0.5});
    }
    EXPECT_EQ(model[Arena::kWeights], pulled / 8);
    downpour->BeforePush(model);

    EXPECT_EQ(model[Arena::kGradient], pulled * 7 / 4);
  }
}

}  // namespace
}  // namespace slipstream
