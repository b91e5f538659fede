#include "worker/training/step_figures.h"

#include <gtest/gtest.h>

#include <vector>

namespace slipstream {
namespace {

const absl::Time kStart = absl::FromUnixSeconds(1'000'000);

/// A step of 10 examples that took 3 s of computing and 1 s of talking, and ended at second `end`.
StepFigures::Step StepEndingAt(int end, std::optional<uint32_t> correct, float loss) {
  return {.end = kStart + absl::Seconds(end),
          .compute = absl::Seconds(3),
          .communication = absl::Seconds(1),
          .examples = 10,
          .correct = correct,
          .loss = loss};
}

TEST(StepFiguresTest, AreZeroBeforeTheFirstStep) {
  const StepFigures::Figures figures = StepFigures().Read(kStart);

  EXPECT_EQ(figures.pushes, 0u);
  EXPECT_EQ(figures.examples_per_second, 0);
  EXPECT_EQ(figures.compute_share, 0);
}

TEST(StepFiguresTest, AreMeansByExamplesAndSharesOfTheTimeSinceTheFirstStep) {
  StepFigures figures;
  figures.OnStep(StepEndingAt(4, 5, 2.0f), {});
  figures.OnStep(StepEndingAt(8, 9, 1.0f), {{.id = 3, .batches_done = 2}});

  const StepFigures::Figures read = figures.Read(kStart + absl::Seconds(10));

  EXPECT_EQ(read.pushes, 2u);
  EXPECT_EQ(read.examples, 20u);
  EXPECT_DOUBLE_EQ(read.examples_per_second, 2.0);
  EXPECT_DOUBLE_EQ(read.train_loss, 1.5);
  EXPECT_DOUBLE_EQ(read.train_accuracy.value(), 0.7);
  EXPECT_DOUBLE_EQ(read.compute_share, 0.6);
  EXPECT_DOUBLE_EQ(read.communication_share, 0.2);
  EXPECT_EQ(read.progress, (std::vector<UnitProgress>{{3, 2}}));
}

TEST(StepFiguresTest, HaveNoAccuracyWhereTheLossKnowsNoClasses) {
  StepFigures figures;
  figures.OnStep(StepEndingAt(4, std::nullopt, 2.0f), {});

  const StepFigures::Figures read = figures.Read(kStart + absl::Seconds(10));

  EXPECT_FALSE(read.train_accuracy.has_value());
  EXPECT_DOUBLE_EQ(read.train_loss, 2.0);
}

TEST(StepFiguresTest, ForgetStepsThatLeftTheWindow) {
  StepFigures figures;
  figures.OnStep(StepEndingAt(4, 0, 1000), {});
  for (size_t i = 0; i < StepFigures::kWindowSteps; ++i) {
    figures.OnStep(StepEndingAt(static_cast<int>(4 * (i + 2)), 10, 1), {});
  }

  const StepFigures::Figures read = figures.Read(kStart + absl::Seconds(1000));

  EXPECT_DOUBLE_EQ(read.train_loss, 1.0);
  EXPECT_DOUBLE_EQ(read.train_accuracy.value(), 1.0);
  EXPECT_EQ(read.pushes, StepFigures::kWindowSteps + 1);
}

}  // namespace
}  // namespace slipstream
