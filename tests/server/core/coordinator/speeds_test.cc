#include "server/core/coordinator/speeds.h"

#include <gtest/gtest.h>

#include <limits>
#include <optional>

#include "tests/server/core/coordinator/coordinator_fixture.h"

namespace slipstream {
namespace {

constexpr WorkerId kFast{0};
constexpr WorkerId kHalf{1};
constexpr WorkerId kSlow{2};

// The figures of H_w = max(1, ⌊H v_w / v_max⌋), arXiv 2401.09135.
TEST(StepsBySpeedTest, AreTheShareOfTheSpeedAndAtLeastOne) {
  EXPECT_EQ(StepsBySpeed(500, 10, 10), 500u);
  EXPECT_EQ(StepsBySpeed(500, 5, 10), 250u);
  EXPECT_EQ(StepsBySpeed(500, 2, 10), 100u);
  EXPECT_EQ(StepsBySpeed(8, 9.9, 10), 7u);
  EXPECT_EQ(StepsBySpeed(8, 0.1, 10), 1u);
  EXPECT_EQ(StepsBySpeed(1, 1e-9, 1e9), 1u);
  for (uint64_t steps = 1; steps <= 10'000; ++steps) {
    ASSERT_EQ(StepsBySpeed(steps, 0.1 / 3, 0.1 / 3), steps);
  }
}

TEST(WorkerSpeedsTest, EachWorkerTakesStepsByItsSpeedOnceThatIsKnown) {
  WorkerSpeeds speeds(500);
  EXPECT_EQ(speeds.StepsOf(kSlow), std::nullopt);
  ASSERT_TRUE(speeds.Report(kSlow, 2).ok());
  EXPECT_EQ(speeds.StepsOf(kSlow), 500u) << "it is the fastest known";
  ASSERT_TRUE(speeds.Report(kFast, 10).ok());
  ASSERT_TRUE(speeds.Report(kHalf, 5).ok());

  EXPECT_EQ(speeds.StepsOf(kFast), 500u);
  EXPECT_EQ(speeds.StepsOf(kHalf), 250u);
  EXPECT_EQ(speeds.StepsOf(kSlow), 100u);

  speeds.Forget(kFast);
  EXPECT_EQ(speeds.StepsOf(kFast), std::nullopt);
  EXPECT_EQ(speeds.StepsOf(kHalf), 500u);
  EXPECT_EQ(speeds.StepsOf(kSlow), 200u);
}

TEST(WorkerSpeedsTest, AnOddReportMovesASpeedByAQuarterOfItsDistance) {
  WorkerSpeeds speeds(100);
  ASSERT_TRUE(speeds.Report(kFast, 10).ok());
  ASSERT_TRUE(speeds.Report(kHalf, 10).ok());

  ASSERT_TRUE(speeds.Report(kHalf, 2).ok());

  EXPECT_EQ(speeds.StepsOf(kHalf), 80u);
  for (int i = 0; i < 30; ++i) ASSERT_TRUE(speeds.Report(kHalf, 2).ok());
  EXPECT_EQ(speeds.StepsOf(kHalf), 20u);
}

TEST(WorkerSpeedsTest, RefusesWhatIsNoSpeedAndKeepsWhatItKnew) {
  WorkerSpeeds speeds(100);
  ASSERT_TRUE(speeds.Report(kFast, 10).ok());
  ASSERT_TRUE(speeds.Report(kHalf, 5).ok());
  for (const double odd : {-1.0, 2e9, std::numeric_limits<double>::infinity(),
                           std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_EQ(speeds.Report(kFast, odd).code(), absl::StatusCode::kInvalidArgument) << odd;
  }
  ASSERT_TRUE(speeds.Report(kHalf, 0).ok()) << "not measured";

  EXPECT_EQ(speeds.StepsOf(kFast), 100u);
  EXPECT_EQ(speeds.StepsOf(kHalf), 50u);
}

class StepsBySpeedOfARunTest : public CoordinatorTest {
 protected:
  static RunSpec SpecBySpeed(bool by_speed) {
    RunSpec spec = Spec();
    spec.worker.algorithm = AlgorithmKind::kLocalSgd;
    spec.worker.parameters["steps"] = 500;
    spec.worker.steps_by_speed = by_speed;
    return spec;
  }
};

TEST_F(StepsBySpeedOfARunTest, LiveWorkersAreComparedWithTheFastestOfThem) {
  Train(SpecBySpeed(true));
  ASSERT_TRUE(coordinator().OnSpeed(ada_, 10).ok());
  EXPECT_EQ(coordinator().StepsFor(bob_.worker), std::nullopt);
  ASSERT_TRUE(coordinator().OnSpeed(bob_, 2).ok());
  EXPECT_EQ(coordinator().StepsFor(bob_.worker), 100u);

  ASSERT_TRUE(coordinator().OnLeave(ada_, "", now_).ok());

  EXPECT_EQ(coordinator().StepsFor(bob_.worker), 500u);
  EXPECT_EQ(coordinator().StepsFor(ada_.worker), std::nullopt);
  EXPECT_EQ(coordinator().OnSpeed(ada_, 10).code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(StepsBySpeedOfARunTest, AReplacedWorkerIsMeasuredAnew) {
  Train(SpecBySpeed(true));
  ASSERT_TRUE(coordinator().OnSpeed(ada_, 10).ok());
  ASSERT_TRUE(coordinator().OnSpeed(bob_, 2).ok());

  ASSERT_TRUE(coordinator().OnRegister({.worker = bob_.worker, .host = "host"}, now_).ok());

  EXPECT_EQ(coordinator().StepsFor(bob_.worker), std::nullopt);
}

TEST_F(StepsBySpeedOfARunTest, SpeedsHaveNoEffectUnlessTheRunAsksForIt) {
  Train(SpecBySpeed(false));
  ASSERT_TRUE(coordinator().OnSpeed(ada_, 10).ok());

  EXPECT_EQ(coordinator().StepsFor(ada_.worker), std::nullopt);
}

}  // namespace
}  // namespace slipstream
