#include "worker/python/callers_model.h"

#include <gtest/gtest.h>

#include <vector>

namespace slipstream {
namespace {

using Arena = LocalModel::Arena;

/// A model of two tensors with three values and one.
class CallersModelTest : public testing::Test {
 protected:
  CallersModelTest() {
    EXPECT_TRUE(layout_.Append("first", {3}).ok());
    EXPECT_TRUE(layout_.Append("second", {1}).ok());
  }

  TensorLayout layout_;
  std::vector<float> weights_ = {1, 2, 3, 4};
  std::vector<float> values_ = {0, 0, 0, 0};
  std::vector<float> landing_ = {10, 20, 30, 40};
  CallersModel model_{layout_, weights_, values_, landing_};
  const std::vector<float> gradient_ = {5, 6, 7};
};

TEST_F(CallersModelTest, ReadsTheGradientOfEachTensorWhereItIsAndOthersAsZero) {
  model_.SetGradient({gradient_.data(), nullptr});

  model_.Combine(Arena::kAnchor, 2, Arena::kGradient, -1, Arena::kWeights);

  EXPECT_EQ(values_, (std::vector<float>{9, 10, 11, -4}));
}

TEST_F(CallersModelTest, ChangesNothingOutsideTheRange) {
  model_.SetGradient({gradient_.data(), gradient_.data()});

  model_.CombineWithin({1, 3}, Arena::kWeights, 1, Arena::kGradient, 1, Arena::kLanding);

  EXPECT_EQ(weights_, (std::vector<float>{1, 26, 37, 4}));
}

TEST_F(CallersModelTest, WhatIsWrittenToTheGradientIsPushedAndTakesItsPlace) {
  model_.SetGradient({gradient_.data(), nullptr});
  model_.CopyWithin({0, 4}, Arena::kAnchor, Arena::kWeights);

  model_.CopyWithin({0, 4}, Arena::kGradient, Arena::kAnchor);
  model_.Combine(Arena::kWeights, 1, Arena::kWeights, -1, Arena::kGradient);

  EXPECT_EQ(values_, (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(weights_, (std::vector<float>{0, 0, 0, 0}));
}

}  // namespace
}  // namespace slipstream
