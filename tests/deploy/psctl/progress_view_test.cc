#include "deploy/psctl/progress_view.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/deploy/psctl/example_status.h"

namespace slipstream {
namespace {

TEST(ProgressViewTest, HasNoAccuracyWhereTheLossKnowsNoClasses) {
  v1::RunStatus status = ExampleStatus();
  status.clear_train_accuracy();
  v1::EvaluationStatus evaluation = ExampleEvaluation(3, 0.5, false);
  evaluation.clear_test_accuracy();

  EXPECT_EQ(FormatProgress(status, 4),
            "training 25.0%  epoch 2/4  loss 0.5000  1234 examples/s  staleness 1.50  1m30s left");
  EXPECT_EQ(FormatEvaluation(evaluation),
            "epoch 3: test loss 0.2500 at version 1406 (4000 examples in 0.5 s)");
}

TEST(ProgressViewTest, SaysEverythingInOneLine) {
  EXPECT_EQ(FormatProgress(ExampleStatus(), 4),
            "training 25.0%  epoch 2/4  loss 0.5000  accuracy 87.5%  1234 examples/s  "
            "staleness 1.50  1m30s left");
}

TEST(ProgressViewTest, LeavesOutHowManyEpochsWhereThatIsNotKnown) {
  EXPECT_EQ(FormatProgress(ExampleStatus()),
            "training 25.0%  epoch 2  loss 0.5000  accuracy 87.5%  1234 examples/s  "
            "staleness 1.50  1m30s left");
}

TEST(ProgressViewTest, SaysNothingOfLossAndAccuracyBeforeTheFirstReport) {
  v1::RunStatus status = ExampleStatus();
  for (v1::WorkerStatus& worker : *status.mutable_workers()) worker.set_examples(0);

  EXPECT_EQ(FormatProgress(status, 4),
            "training 25.0%  epoch 2/4  loss -  accuracy -  1234 examples/s  staleness 1.50  "
            "1m30s left");
}

TEST(ProgressViewTest, FitsTheBarIntoTheTerminalsWidth) {
  const v1::RunStatus status = ExampleStatus();

  EXPECT_EQ(FormatProgressBar(status, 4, 120),
            "[======                  ]  25.0%  epoch 2/4  loss 0.5000  accuracy 87.5%  1234 "
            "examples/s  staleness 1.50  1m30s left");
  EXPECT_EQ(FormatProgressBar(status, 4, 102),
            "[==      ]  25.0%  epoch 2/4  loss 0.5000  accuracy 87.5%  1234 examples/s  "
            "staleness 1.50  1m30s left");
  EXPECT_EQ(FormatProgressBar(status, 4, 99),
            " 25.0%  epoch 2/4  loss 0.5000  accuracy 87.5%  1234 examples/s  staleness 1.50  "
            "1m30s left");
  EXPECT_EQ(FormatProgressBar(status, 4, 79),
            " 25.0%  epoch 2/4  loss 0.5000  1234 examples/s  staleness 1.50  1m30s left");
  EXPECT_EQ(FormatProgressBar(status, 4, 59),
            " 25.0%  1234 examples/s  staleness 1.50  1m30s left");
  EXPECT_EQ(FormatProgressBar(status, 4, 4), " 25.");
}

TEST(ProgressViewTest, KeepsPaceStalenessAndTimeLeftInEightyColumns) {
  v1::RunStatus status = ExampleStatus();
  status.set_examples_per_second(1234567);
  status.mutable_staleness()->set_window_mean(1234.56);
  status.set_seconds(300000);
  status.set_train_loss(12345.6789);
  for (size_t columns = 59; columns <= 200; ++columns) {
    SCOPED_TRACE(testing::Message() << columns << " columns");

    const std::string line = FormatProgressBar(status, 1000, columns);

    EXPECT_LE(line.size(), columns);
    EXPECT_NE(line.find("1234567 examples/s"), line.npos) << line;
    EXPECT_NE(line.find("250h00m left"), line.npos) << line;
    if (columns >= 79) {
      EXPECT_NE(line.find("staleness 1234.56"), line.npos) << line;
    }
  }
}

TEST(ProgressViewTest, NamesThePhaseWhereThereAreNoFigures) {
  v1::RunStatus status;
  status.set_phase(v1::WAITING_FOR_WORKERS);

  EXPECT_EQ(FormatProgress(status), "waiting for workers");
  EXPECT_EQ(FormatProgressBar(status, 4, 80),
            "[                        ]   0.0%  waiting for workers");
  EXPECT_EQ(CurrentEpoch(status), 0u);
  EXPECT_FALSE(SecondsLeft(status).has_value());
}

TEST(ProgressViewTest, NeverPassesTheLastEpoch) {
  v1::RunStatus status = ExampleStatus();
  status.set_epochs(4);
  status.set_batches_done(401);

  EXPECT_EQ(DoneShare(status), 1);
  EXPECT_EQ(CurrentEpoch(status), 4u);
  EXPECT_EQ(SecondsLeft(status), 0);
}

TEST(ProgressViewTest, WritesTimesForPeople) {
  EXPECT_EQ(FormatSeconds(0), "0s");
  EXPECT_EQ(FormatSeconds(59.2), "1m00s");
  EXPECT_EQ(FormatSeconds(187), "3m07s");
  EXPECT_EQ(FormatSeconds(7505), "2h05m");
}

TEST(ProgressViewTest, TellsOfAnEvaluation) {
  EXPECT_EQ(
      FormatEvaluation(ExampleEvaluation(3, 0.8735, false)),
      "epoch 3: test accuracy 87.35%, test loss 0.2500 at version 1406 (4000 examples in 0.5 s)");
}

TEST(ProgressViewTest, NamesTheVersionsThatAnEvaluationMeasured) {
  v1::EvaluationStatus evaluation = ExampleEvaluation(3, 0.8735, false);
  evaluation.set_versions(0, 1409);

  EXPECT_EQ(FormatEvaluation(evaluation),
            "epoch 3: test accuracy 87.35%, test loss 0.2500 at versions 1406 to 1409 (4000 "
            "examples in 0.5 s)");
  evaluation.clear_versions();
  EXPECT_EQ(FormatEvaluation(evaluation),
            "epoch 3: test accuracy 87.35%, test loss 0.2500 (4000 examples in 0.5 s)");
}

}  // namespace
}  // namespace slipstream
