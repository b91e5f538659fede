#include "worker/training/step_figures.h"

#include <gtest/gtest.h>

#include <vector>

namespace slipstream {
namespace {

const absl::Time kStart = absl::FromUnixSeconds(1'000'000);

/// Returns a step of 10 examples that took 4 s. It computed for 3 s, and stood still for half a
/// second before forward and for half a second within it.
StepFigures::Step StepEndingAt(int end, std::optional<uint32_t> correct, float loss,
                               uint64_t number = 1) {
  StepFigures::Step step;
  step.number = number;
  step.backward_end = kStart + absl::Seconds(end);
  step.forward_end = step.backward_end - absl::Seconds(2);
  step.forward_begin = step.backward_end - absl::Milliseconds(3500);
  step.turn = step.backward_end - absl::Seconds(4);
  step.waited = absl::Milliseconds(500);
  step.blocked = absl::Milliseconds(500);
  step.examples = 10;
  step.correct = correct;
  step.loss = loss;
  return step;
}

/// Returns a transfer whose lanes were busy for these numbers of seconds.
GradientClient::Transfer TransferOf(uint64_t step, const std::vector<int>& busy) {
  GradientClient::Transfer transfer;
  transfer.step = step;
  for (const int seconds : busy) {
    LaneTimes lane;
    lane.busy = absl::Seconds(seconds);
    transfer.lanes.push_back(lane);
  }
  return transfer;
}

TEST(StepFiguresTest, AreZeroBeforeTheFirstStep) {
  const StepFigures::Figures figures = StepFigures().Read(kStart);

  EXPECT_EQ(figures.steps, 0u);
  EXPECT_EQ(figures.examples_per_second, 0);
  EXPECT_EQ(figures.compute_share, 0);
  EXPECT_EQ(figures.overlap, 0);
}

TEST(StepFiguresTest, TheSpeedIsThatOfComputingOnceThereAreStepsEnough) {
  StepFigures figures;
  for (size_t i = 1; i <= StepFigures::kSpeedSteps; ++i) {
    EXPECT_EQ(figures.Read(kStart).steps_per_second, 0);
    figures.OnStep(StepEndingAt(4 * static_cast<int>(i), 5, 2.0f, i));
  }

  EXPECT_DOUBLE_EQ(figures.Read(kStart + absl::Hours(1)).steps_per_second, 1.0 / 3)
      << "waiting does not count";
}

TEST(StepFiguresTest, AStepOfOneOfSeveralThreadsTakesItsShareOfTheirTime) {
  StepFigures figures;
  for (size_t i = 1; i <= StepFigures::kSpeedSteps; ++i) {
    StepFigures::Step step = StepEndingAt(4 * static_cast<int>((i + 1) / 2), 5, 2.0f, i);
    step.threads = 2;
    figures.OnStep(step);
  }

  const StepFigures::Figures read = figures.Read(kStart + absl::Seconds(16));
  EXPECT_DOUBLE_EQ(read.compute_share, 12.0 / 16);
  EXPECT_DOUBLE_EQ(read.steps_per_second, 2.0 / 3);
  EXPECT_DOUBLE_EQ(read.overlap, 12.0 / 16);
}

TEST(StepFiguresTest, StayWhatTheyWereWhenTheWorkWasDone) {
  StepFigures figures;
  figures.OnStep(StepEndingAt(4, 5, 2.0f));
  figures.OnStep(StepEndingAt(8, 9, 1.0f));
  const double rate = figures.Read(kStart + absl::Seconds(10)).examples_per_second;
  EXPECT_LT(figures.Read(kStart + absl::Seconds(20)).examples_per_second, rate)
      << "a worker that stands still slows down";

  figures.OnDone({}, kStart + absl::Seconds(10));

  const StepFigures::Figures later = figures.Read(kStart + absl::Hours(1));
  EXPECT_TRUE(later.is_done);
  EXPECT_DOUBLE_EQ(later.examples_per_second, rate);
  EXPECT_DOUBLE_EQ(later.compute_share, 6.0 / 10);
}

TEST(StepFiguresTest, AreMeansByExamplesAndSharesOfTheTimeSinceTheFirstTurn) {
  StepFigures figures;
  figures.OnStep(StepEndingAt(4, 5, 2.0f));
  figures.OnStep(StepEndingAt(8, 9, 1.0f));
  figures.OnProgress({{.id = 3, .batches_done = 2}});

  const StepFigures::Figures read = figures.Read(kStart + absl::Seconds(10));

  EXPECT_EQ(read.steps, 2u);
  EXPECT_EQ(read.examples, 20u);
  EXPECT_DOUBLE_EQ(read.examples_per_second, 2.0);
  EXPECT_DOUBLE_EQ(read.train_loss, 1.5);
  EXPECT_DOUBLE_EQ(read.train_accuracy.value(), 0.7);
  EXPECT_DOUBLE_EQ(read.compute_share, 0.6);
  EXPECT_EQ(read.progress, (std::vector<UnitProgress>{{3, 2}}));
}

/// The times are those of the computer's clock, which somebody may set, and gradients in flight
/// overlap. The coordinator refuses a share that is none.
TEST(StepFiguresTest, SharesAreSharesWhateverTheClockSays) {
  StepFigures figures;
  figures.OnStep(StepEndingAt(4, 5, 2.0f));
  StepFigures::Step back = StepEndingAt(8, 9, 1.0f, 2);
  back.backward_end = kStart - absl::Hours(1);
  back.waited = -absl::Hours(2);
  figures.OnStep(back);
  for (uint64_t step = 1; step <= 2; ++step) figures.OnTransfer(TransferOf(step, {7, 8}));

  for (const int at : {-3600, 1, 10}) {
    const StepFigures::Figures read = figures.Read(kStart + absl::Seconds(at));

    for (const double share :
         {read.compute_share, read.communication_share, read.communication_hidden, read.overlap}) {
      EXPECT_GE(share, 0) << at;
      EXPECT_LE(share, 1) << at;
    }
    EXPECT_GE(read.examples_per_second, 0) << at;
  }
}

/// A step whose forward pass began anew may have waited for longer than it says that it took.
TEST(StepFiguresTest, AStepTakesNothingFromOthers) {
  StepFigures figures;
  figures.OnStep(StepEndingAt(4, 5, 2.0f));
  StepFigures::Step waited = StepEndingAt(8, 9, 1.0f, 2);
  waited.waited = absl::Seconds(100);
  figures.OnStep(waited);

  EXPECT_DOUBLE_EQ(figures.Read(kStart + absl::Seconds(10)).compute_share, 0.3);
}

TEST(StepFiguresTest, HaveNoAccuracyWhereTheLossKnowsNoClasses) {
  StepFigures figures;
  figures.OnStep(StepEndingAt(4, std::nullopt, 2.0f));

  const StepFigures::Figures read = figures.Read(kStart + absl::Seconds(10));

  EXPECT_FALSE(read.train_accuracy.has_value());
  EXPECT_DOUBLE_EQ(read.train_loss, 2.0);
}

TEST(StepFiguresTest, HiddenIsWhatComputingDidNotStandStillFor) {
  StepFigures figures;
  figures.OnStep(StepEndingAt(4, 0, 1, 1));
  figures.OnTransfer(TransferOf(1, {1, 3}));  // Lanes run in parallel: three seconds.
  figures.OnStep(StepEndingAt(8, 0, 1, 2));
  figures.OnTransfer(TransferOf(2, {1, 1}));

  const StepFigures::Figures read = figures.Read(kStart + absl::Seconds(8));

  EXPECT_DOUBLE_EQ(read.communication_share, 0.5);
  EXPECT_DOUBLE_EQ(read.communication_hidden, 0.5);  // Idle for two of four seconds.
  EXPECT_DOUBLE_EQ(read.overlap, 0.75);              // Busy for six of eight.
}

TEST(StepFiguresTest, TheSteadyOverlapIsThatOfTheMiddleOfTheSteps) {
  for (const int steps : {8, 60, 1000}) {
    SCOPED_TRACE(steps);
    StepFigures figures;
    for (int i = 1; i <= steps; ++i) {
      StepFigures::Step step = StepEndingAt(4 * i, 0, 1, static_cast<uint64_t>(i));
      if (i <= steps / 8 || i > steps - steps / 8) step.blocked += absl::Hours(1);
      figures.OnStep(step);
    }

    const StepFigures::Figures read = figures.Read(kStart + absl::Seconds(4 * steps));

    EXPECT_DOUBLE_EQ(read.steady_overlap, 0.75);  // As each step for itself.
    EXPECT_LT(read.overlap, 0.1);
  }
}

TEST(StepFiguresTest, StandingStillForLongerThanCommunicationHidesNothing) {
  StepFigures figures;
  figures.OnStep(StepEndingAt(4, 0, 1, 1));
  GradientClient::Transfer transfer = TransferOf(1, {0});
  transfer.lanes[0].busy = absl::Milliseconds(900);
  figures.OnTransfer(transfer);

  EXPECT_EQ(figures.Read(kStart + absl::Seconds(4)).communication_hidden, 0);
}

TEST(StepFiguresTest, TellTheLanesOfAFewLastSteps) {
  StepFigures figures;
  const std::vector<int> shards(StepFigures::kLanesTold / 2, 1);
  for (uint64_t number = 1; number <= 9; ++number) {
    figures.OnStep(StepEndingAt(4, 0, 1, number));
    figures.OnTransfer(TransferOf(number, shards));
  }

  const StepFigures::Figures read = figures.Read(kStart);

  ASSERT_EQ(read.recent.size(), 2u);
  EXPECT_EQ(read.recent[0].step.number, 8u);
  EXPECT_EQ(read.recent[1].step.number, 9u);
  EXPECT_EQ(read.recent[1].lanes.size(), shards.size());
}

TEST(StepFiguresTest, ForgetStepsThatLeftTheWindow) {
  StepFigures figures;
  figures.OnStep(StepEndingAt(4, 0, 1000));
  for (size_t i = 0; i < StepFigures::kWindowSteps; ++i) {
    figures.OnStep(StepEndingAt(static_cast<int>(4 * (i + 2)), 10, 1));
  }

  const StepFigures::Figures read = figures.Read(kStart + absl::Seconds(1000));

  EXPECT_DOUBLE_EQ(read.train_loss, 1.0);
  EXPECT_DOUBLE_EQ(read.train_accuracy.value(), 1.0);
  EXPECT_EQ(read.steps, StepFigures::kWindowSteps + 1);
}

}  // namespace
}  // namespace slipstream
