#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "common/policy/learning_rate.h"
#include "common/policy/round_policy.h"
#include "common/policy/staleness_scaling.h"

namespace slipstream {
namespace {

using Policy = ConsistencySpec::Policy;
using Scaling = OptimizerSpec::StalenessScaling;

struct CloseCase {
  std::string name;
  ConsistencySpec spec;
  RoundPolicy::RoundFacts facts;
  bool closes;
};

class RoundClosing : public testing::TestWithParam<CloseCase> {};

TEST_P(RoundClosing, FollowsThePolicy) {
  EXPECT_EQ(RoundPolicy(GetParam().spec).Closes(GetParam().facts), GetParam().closes);
}

INSTANTIATE_TEST_SUITE_P(
    Policies, RoundClosing,
    testing::Values(CloseCase{"HardsyncWaitsForEveryMember",
                              {Policy::kHardsync},
                              {.members = 4, .contributions = 3, .awaited = 1},
                              false},
                    CloseCase{"HardsyncClosesWhenNobodyIsAwaited",
                              {Policy::kHardsync},
                              {.members = 4, .contributions = 3, .excused = 1},
                              true},
                    CloseCase{"HardsyncClosesOnExcusesAlone",
                              {Policy::kHardsync},
                              {.members = 2, .excused = 2},
                              true},
                    CloseCase{
                        "HardsyncStaysOpenUntilSomebodyAnswers", {Policy::kHardsync}, {}, false},
                    CloseCase{"SoftsyncOneWaitsForAll",
                              {Policy::kSoftsync, 1},
                              {.members = 4, .contributions = 3},
                              false},
                    CloseCase{"SoftsyncTwoOfFourClosesWithTwo",
                              {Policy::kSoftsync, 2},
                              {.members = 4, .contributions = 2},
                              true},
                    CloseCase{"SoftsyncRoundsTheSizeDown",
                              {Policy::kSoftsync, 2},
                              {.members = 5, .contributions = 2},
                              true},
                    CloseCase{"SoftsyncWithFewerMembersThanNClosesWithOne",
                              {Policy::kSoftsync, 4},
                              {.members = 3, .contributions = 1},
                              true},
                    CloseCase{"SoftsyncDrainingClosesWithWhatThereIs",
                              {Policy::kSoftsync, 1},
                              {.members = 4, .contributions = 1, .is_draining = true},
                              true},
                    CloseCase{"SoftsyncDrainingLeavesAnEmptyRoundOpen",
                              {Policy::kSoftsync, 1},
                              {.members = 4, .is_draining = true},
                              false},
                    CloseCase{"SoftsyncHeldBackStaysOpenThoughFull",
                              {Policy::kSoftsync, 1},
                              {.members = 4, .contributions = 4, .is_held_back = true},
                              false},
                    CloseCase{"SoftsyncNoLongerHeldBackWaitsForNobodyWhoJoined",
                              {Policy::kSoftsync, 1},
                              {.members = 5, .contributions = 4, .was_held_back = true},
                              true},
                    CloseCase{"AsyncClosesWithEveryGradient",
                              {Policy::kAsync},
                              {.members = 4, .contributions = 1},
                              true}),
    [](const auto& tested) { return tested.param.name; });

TEST(RoundPolicyTest, OnlySynchronousRoundsDropLateGradients) {
  using Decision = RoundPolicy::PushDecision;
  EXPECT_EQ(RoundPolicy({Policy::kHardsync}).DecidePush({.base = 4, .decided = 5}),
            Decision::kDropLate);
  EXPECT_EQ(RoundPolicy({Policy::kHardsync}).DecidePush({.base = 5, .decided = 5}),
            Decision::kJoinRound);
  EXPECT_EQ(RoundPolicy({Policy::kSoftsync, 1}).DecidePush({.base = 4, .decided = 5}),
            Decision::kJoinRound);
  EXPECT_EQ(RoundPolicy({Policy::kAsync}).DecidePush({.base = 0, .decided = 500}),
            Decision::kJoinRound);
}

TEST(StalenessScalingTest, DividesOneGradientByItsStaleness) {
  EXPECT_EQ(GradientScale(Scaling::kPerGradient, 0), 1.0);
  EXPECT_EQ(GradientScale(Scaling::kPerGradient, 1), 1.0);
  EXPECT_EQ(GradientScale(Scaling::kPerGradient, 4), 0.25);
  EXPECT_EQ(GradientScale(Scaling::kNone, 4), 1.0);
  EXPECT_EQ(GradientScale(Scaling::kMean, 4), 1.0);
}

TEST(StalenessScalingTest, DividesARoundByTheMeanStalenessButNeverRaisesIt) {
  EXPECT_EQ(RoundScale(Scaling::kMean, 0.5), 1.0);
  EXPECT_EQ(RoundScale(Scaling::kMean, 4.0), 0.25);
  EXPECT_EQ(RoundScale(Scaling::kPerGradient, 4.0), 1.0);
}

TEST(LearningRateTest, IsConstantByDefault) {
  const LearningRate rate(0.5, {}, {.examples_per_epoch = 100, .epochs = 3});

  EXPECT_EQ(rate.At(0), 0.5);
  EXPECT_EQ(rate.At(1'000'000), 0.5);
}

TEST(LearningRateTest, StepsDownAtTheNamedEpochs) {
  const ScheduleSpec steps = {
      .kind = ScheduleSpec::Kind::kStep, .at_epochs = {1, 2}, .factor = 0.1};
  const LearningRate rate(1.0, steps, {.examples_per_epoch = 100, .epochs = 3});

  EXPECT_DOUBLE_EQ(rate.At(99), 1.0);
  EXPECT_DOUBLE_EQ(rate.At(100), 0.1);
  EXPECT_NEAR(rate.At(200), 0.01, 1e-12);
}

TEST(LearningRateTest, FollowsTheCosineFromWarmUpToTheFinalShare) {
  const ScheduleSpec cosine = {
      .kind = ScheduleSpec::Kind::kCosine, .warmup_epochs = 1, .final_share = 0.1};
  const LearningRate rate(1.0, cosine, {.examples_per_epoch = 100, .epochs = 3});

  EXPECT_DOUBLE_EQ(rate.At(0), 0.0);
  EXPECT_DOUBLE_EQ(rate.At(50), 0.5);
  EXPECT_DOUBLE_EQ(rate.At(100), 1.0);
  EXPECT_DOUBLE_EQ(rate.At(200), 0.55);
  EXPECT_DOUBLE_EQ(rate.At(300), 0.1);
  EXPECT_DOUBLE_EQ(rate.At(900), 0.1);
}

}  // namespace
}  // namespace slipstream
