#include <gtest/gtest.h>

#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/core/coordinator.h"
#include "tests/server/core/coordinator_fixture.h"

// Tests of the choice of the worker that measures the weights, and of what happens when none does.

namespace slipstream {
namespace {

TEST_F(CoordinatorTest, TheFinalEvaluationIsOrderedAgainIfItsWorkerDies) {
  RunSpec spec = Spec();
  spec.evaluation.every_epochs = 0;
  Train(spec);
  WorkAllAs(ada_);
  drained_ = true;
  Sync();
  ASSERT_TRUE(coordinator().EvaluationFor(ada_.worker).has_value());

  Pass(absl::Seconds(6), {bob_});

  ASSERT_TRUE(coordinator().EvaluationFor(bob_.worker).has_value());
  EXPECT_TRUE(coordinator().EvaluationFor(bob_.worker)->is_final);

  // No worker is left. One that comes back may still measure the weights.
  ASSERT_TRUE(coordinator().OnLeave(bob_, "", now_).ok());
  EXPECT_EQ(coordinator().phase(), Phase::kEvaluating);
  const auto back = coordinator().OnRegister({.worker = WorkerId{1}}, now_);
  ASSERT_TRUE(back.ok());
  EXPECT_TRUE(coordinator().EvaluationFor(WorkerId{1}).has_value());
  Pass(absl::Seconds(130), {});
  EXPECT_EQ(coordinator().phase(), Phase::kFailed);
}

TEST_F(CoordinatorTest, AnEvaluatorThatGetsOnHasAllTheTimeItNeeds) {
  Evaluate();
  const uint64_t order = coordinator().EvaluationFor(ada_.worker)->number;
  coordinator().OnMeasured(ada_, order - 1, 1'000'000, now_);  // An order that is over.
  for (uint64_t measured = 1; measured <= 5; ++measured) {
    ASSERT_NO_FATAL_FAILURE(Pass(absl::Seconds(50), {ada_, bob_}));
    coordinator().OnMeasured(ada_, order, 100 * measured, now_);
    coordinator().OnMeasured(bob_, order, 1'000'000, now_);  // Bob has no order.
  }
  ASSERT_TRUE(coordinator().EvaluationFor(ada_.worker).has_value()) << "after 250 s, not 60";

  // Ada keeps reporting, but makes no progress.
  for (int times = 0; times < 2; ++times) {
    ASSERT_NO_FATAL_FAILURE(Pass(absl::Seconds(50), {ada_, bob_}));
    coordinator().OnMeasured(ada_, order, 500, now_);
  }
  EXPECT_FALSE(coordinator().EvaluationFor(ada_.worker).has_value());
  EXPECT_TRUE(coordinator().EvaluationFor(bob_.worker).has_value());
}

TEST_F(CoordinatorTest, AnEvaluationGivenToAnotherWorkerNamesTheEpochsCompleteByThen) {
  RunSpec spec = Spec(ConsistencySpec::Policy::kHardsync);
  spec.training.epochs = 10;
  Train(spec);
  batches_ = 4;
  Sync();
  ASSERT_EQ(coordinator().EvaluationFor(ada_.worker)->epoch, 1u);
  batches_ = 12;
  Sync();

  ASSERT_TRUE(coordinator().OnLeave(ada_, "", now_).ok());

  ASSERT_TRUE(coordinator().EvaluationFor(bob_.worker).has_value());
  EXPECT_EQ(coordinator().EvaluationFor(bob_.worker)->epoch, 3u);
}

TEST_F(CoordinatorTest, SaysThatAnEvaluationWasSkippedAndWhy) {
  RunSpec spec = Spec(ConsistencySpec::Policy::kHardsync);
  spec.training.epochs = 10;
  Train(spec);
  for (uint64_t epoch = 1; epoch <= 3; ++epoch) {
    batches_ = 4 * epoch;
    Sync();
  }

  EXPECT_EQ(CountNotes("evaluation skipped epoch=2 reason=\"the one of epoch 1 still runs\""), 1);
}

TEST_F(CoordinatorTest, FailsWhenTheFinalWeightsGiveALossThatIsNotFinite) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const std::pair<double, std::string> cases[] = {
      {kNan, "nan"}, {-kNan, "nan"}, {std::numeric_limits<double>::infinity(), "inf"}};
  for (const auto& [loss, text] : cases) {
    initialized_ = drained_ = false;
    Evaluate();

    ASSERT_TRUE(coordinator().OnReport(ada_, 1, {.test_loss = loss}, kHash, now_).ok());

    EXPECT_EQ(coordinator().phase(), Phase::kFailed);
    EXPECT_EQ(coordinator().failure(), "training diverged: the final weights give loss " + text);
  }
}

TEST_F(CoordinatorTest, AWorkerThatLivesButDoesNotMeasureIsFollowedByTheNextUntilNoneIsLeft) {
  Evaluate();

  Pass(absl::Seconds(60), {ada_, bob_});
  EXPECT_TRUE(coordinator().EvaluationFor(ada_.worker).has_value());
  Pass(absl::Seconds(1), {ada_, bob_});

  EXPECT_FALSE(coordinator().EvaluationFor(ada_.worker).has_value());
  ASSERT_TRUE(coordinator().EvaluationFor(bob_.worker).has_value());
  EXPECT_TRUE(coordinator().EvaluationFor(bob_.worker)->is_final);
  Pass(absl::Seconds(60), {ada_, bob_});
  EXPECT_EQ(coordinator().phase(), Phase::kEvaluating);
  Pass(absl::Seconds(1), {ada_, bob_});
  EXPECT_EQ(coordinator().failure(),
            "no worker measured the final weights within 1m00s, though 2 live");
}

TEST_F(CoordinatorTest, AnEvaluationOrderedWhileTrainingDoesNotHoldUpTheFinalOneForEver) {
  Train(Spec());
  WorkAllAs(ada_);
  Pass(absl::Seconds(100), {ada_, bob_});
  drained_ = true;
  Sync();
  ASSERT_EQ(coordinator().phase(), Phase::kEvaluating);
  ASSERT_FALSE(coordinator().EvaluationFor(ada_.worker)->is_final);

  Pass(absl::Seconds(60), {ada_, bob_});
  EXPECT_TRUE(coordinator().EvaluationFor(ada_.worker).has_value());
  Pass(absl::Seconds(1), {ada_, bob_});

  ASSERT_TRUE(coordinator().EvaluationFor(bob_.worker).has_value());
  EXPECT_TRUE(coordinator().EvaluationFor(bob_.worker)->is_final);
}

}  // namespace
}  // namespace slipstream
