#include <gtest/gtest.h>

#include <memory>

#include "tests/worker/algorithm/scalar_model.h"
#include "worker/algorithm/worker_algorithm.h"

namespace slipstream {
namespace {

using Arena = LocalModel::Arena;

/// x = 1, x̃ = 0, g = 0.5, η = 0.1, α = 0.9/4.
class ElasticAveragingTest : public testing::Test {
 protected:
  ElasticAveragingTest() {
    model_[Arena::kWeights] = 1;
    model_[Arena::kLanding] = 0;
  }

  void TakeStep(uint64_t number) {
    model_[Arena::kGradient] = 0.5f;
    easgd_->OnGradient(model_, {.number = number, .learning_rate = 0.1});
  }

  const std::unique_ptr<const WorkerAlgorithm> easgd_ =
      MakeWorkerAlgorithm(AlgorithmKind::kEasgd, {.parameters = {}, .workers = 4});
  ScalarModel model_;
};

TEST_F(ElasticAveragingTest, TheForceIsOfTheWeightsThatTheGradientIsOf) {
  easgd_->OnLanding(model_, {0, 1}, false);
  TakeStep(0);
  EXPECT_FLOAT_EQ(model_[Arena::kWeights], 0.725f);
  easgd_->BeforePush(model_, {0, 1});

  const float center = 0 - model_[Arena::kGradient];
  EXPECT_FLOAT_EQ(center, 0.225f);
}

TEST_F(ElasticAveragingTest, ARefusedPushLeavesTheStepsAlone) {
  TakeStep(0);
  easgd_->OnLanding(model_, {0, 1}, false);
  TakeStep(1);
  easgd_->BeforePush(model_, {0, 1});

  easgd_->OnRefused(model_, {0, 1});

  EXPECT_FLOAT_EQ(model_[Arena::kWeights], 0.9f);
}

}  // namespace
}  // namespace slipstream
