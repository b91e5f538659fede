#include "deploy/psctl/status/progress_view.h"

#include <gtest/gtest.h>

#include <string>

#include "deploy/psctl/text_table.h"
#include "tests/deploy/psctl/example_status.h"

namespace slipstream {
namespace {

TEST(ProgressViewTest, HasNoAccuracyWhereTheLossKnowsNoClasses) {
  v1::RunStatus status = ExampleStatus();
  status.clear_train_accuracy();
  v1::EvaluationStatus evaluation = ExampleEvaluation(3, 0.5, false);
  evaluation.clear_test_accuracy();

  EXPECT_EQ(FormatProgress(status),
            "training 25.0%  epoch 2/4  train loss 0.5000  1234 examples/s  staleness 1.50  1m30s "
            "left");
  EXPECT_EQ(FormatEvaluation(evaluation),
            "epoch 3.02: test loss 0.2500 at version 1406 (4000 examples in 500 ms)");
}

TEST(ProgressViewTest, SaysEverythingInOneLine) {
  EXPECT_EQ(FormatProgress(ExampleStatus()),
            "training 25.0%  epoch 2/4  train loss 0.5000  train accuracy 87.5%  1234 examples/s  "
            "staleness 1.50  1m30s left");
}

TEST(ProgressViewTest, LeavesOutHowManyEpochsWhereThatIsNotKnown) {
  v1::RunStatus status = ExampleStatus();
  status.clear_epochs_total();

  EXPECT_EQ(FormatProgress(status, 30), "training 25.0%  1m30s left");
  EXPECT_EQ(FormatProgress(status, 50), "training 25.0%  1234 examples/s  1m30s left");
  EXPECT_EQ(FormatProgress(status, 80),
            "training 25.0%  epoch 2  1234 examples/s  staleness 1.50  1m30s left");
}

TEST(ProgressViewTest, SaysNothingOfLossAndAccuracyBeforeTheFirstReport) {
  v1::RunStatus status = ExampleStatus();
  for (v1::WorkerStatus& worker : *status.mutable_workers()) worker.set_examples(0);

  EXPECT_EQ(FormatProgress(status),
            "training 25.0%  epoch 2/4  train loss -  train accuracy -  1234 examples/s  staleness "
            "1.50  1m30s left");
}

TEST(ProgressViewTest, TellsNoPaceBeforeTheFirstUpdate) {
  v1::RunStatus status = ExampleStatus();
  status.set_examples(0);
  status.set_examples_per_second(0);
  status.set_batches_done(0);

  EXPECT_EQ(FormatProgress(status),
            "training 0.0%  epoch 2/4  train loss 0.5000  train accuracy 87.5%  no update yet  "
            "staleness 1.50");
}

TEST(ProgressViewTest, TellsTheDigitsOfASlowPace) {
  v1::RunStatus status = ExampleStatus();
  status.set_examples_per_second(0.4217);

  EXPECT_NE(FormatProgress(status).find("  0.422 examples/s  "), std::string::npos);
}

TEST(ProgressViewTest, SaysForHowLongNobodyPushes) {
  v1::RunStatus status = ExampleStatus();
  status.add_waiting_rounds()->set_unchanged_seconds(1.9);
  EXPECT_EQ(FormatProgress(status).find("no gradient"), std::string::npos);
  status.add_waiting_rounds()->set_unchanged_seconds(12.43);

  EXPECT_EQ(FormatProgress(status, 60), "training 25.0%  no gradient for 12.4 s  1m30s left");
}

TEST(ProgressViewTest, FitsTheBarIntoTheTerminalsWidth) {
  const v1::RunStatus status = ExampleStatus();

  EXPECT_EQ(
      FormatProgressBar(status, 132),
      "[======                  ]  25.0%  epoch 2/4  train loss 0.5000  train accuracy 87.5%  "
      "1234 examples/s  staleness 1.50  1m30s left");
  EXPECT_EQ(FormatProgressBar(status, 114),
            "[==      ]  25.0%  epoch 2/4  train loss 0.5000  train accuracy 87.5%  1234 "
            "examples/s  staleness 1.50  1m30s left");
  EXPECT_EQ(FormatProgressBar(status, 111),
            " 25.0%  epoch 2/4  train loss 0.5000  train accuracy 87.5%  1234 examples/s  "
            "staleness 1.50  1m30s left");
  EXPECT_EQ(FormatProgressBar(status, 82),
            " 25.0%  epoch 2/4  train loss 0.5000  1234 examples/s  staleness 1.50  1m30s left");
  EXPECT_EQ(FormatProgressBar(status, 59), " 25.0%  1234 examples/s  staleness 1.50  1m30s left");
  EXPECT_EQ(FormatProgressBar(status, 4), " 25…");
}

TEST(ProgressViewTest, KeepsPaceStalenessAndTimeLeftInEightyColumns) {
  v1::RunStatus status = ExampleStatus();
  status.set_examples_per_second(1234567);
  status.mutable_staleness()->set_window_mean(1234.56);
  status.set_seconds(300000);
  status.set_train_loss(12345.6789);
  status.set_epochs_total(1000);
  for (size_t columns = 59; columns <= 200; ++columns) {
    SCOPED_TRACE(testing::Message() << columns << " columns");

    const std::string line = FormatProgressBar(status, columns);

    EXPECT_LE(DisplayWidth(line), columns);
    EXPECT_NE(line.find("1234567 examples/s"), line.npos) << line;
    EXPECT_NE(line.find("10d10h left"), line.npos) << line;
    if (columns >= 79) {
      EXPECT_NE(line.find("staleness 1234.56"), line.npos) << line;
    }
  }
}

TEST(ProgressViewTest, NamesThePhaseWhereThereAreNoFigures) {
  v1::RunStatus status;
  status.set_phase(v1::WAITING_FOR_WORKERS);

  EXPECT_EQ(FormatProgress(status), "waiting for workers");
  EXPECT_EQ(FormatProgress(status, 10), "waiting f…");
  EXPECT_EQ(FormatProgressBar(status, 80),
            "[                        ]   0.0%  waiting for workers");
  EXPECT_EQ(CurrentEpoch(status), 0u);
  EXPECT_FALSE(TimeLeft(status).has_value());
}

TEST(ProgressViewTest, NeverPassesTheLastEpoch) {
  v1::RunStatus status = ExampleStatus();
  status.set_epochs(4);
  status.set_batches_done(401);

  EXPECT_EQ(DoneShare(status), 1);
  EXPECT_EQ(CurrentEpoch(status), 4u);
  EXPECT_EQ(TimeLeft(status), absl::ZeroDuration());
}

TEST(ProgressViewTest, KnowsThatTheRunEndsWithItsTime) {
  v1::RunStatus status = ExampleStatus();
  status.set_seconds_max(40);

  EXPECT_EQ(TimeLeft(status), absl::Seconds(10));
  EXPECT_EQ(DoneShare(status), 0.75);
  EXPECT_EQ(CurrentEpoch(status), 2u);
  status.set_batches_done(0);
  EXPECT_EQ(TimeLeft(status), absl::Seconds(10)) << "nothing has to be done for that";
  status.set_seconds_max(1000);
  status.set_batches_done(100);
  EXPECT_EQ(TimeLeft(status), absl::Seconds(90)) << "its mini-batches are done before";
}

TEST(ProgressViewTest, TellsOfAnEvaluationWithTheEpochThatWasMeasured) {
  v1::EvaluationStatus evaluation = ExampleEvaluation(3, 0.8735, false);
  evaluation.set_epochs_measured(4.5);
  EXPECT_EQ(FormatEvaluation(evaluation),
            "epoch 4.5: test accuracy 87.35%, test loss 0.2500 at version 1406 (4000 examples in "
            "500 ms)");

  evaluation.set_final(true);
  EXPECT_TRUE(FormatEvaluation(evaluation).starts_with("final weights, epoch 3: "));
  evaluation.set_final(false);
  evaluation.set_epochs_measured(3.0000001);
  EXPECT_TRUE(FormatEvaluation(evaluation).starts_with("epoch 3: "));
  evaluation.clear_epochs_measured();
  EXPECT_TRUE(FormatEvaluation(evaluation).starts_with("epoch 3: "));
}

TEST(ProgressViewTest, NamesTheVersionsThatAnEvaluationMeasured) {
  v1::EvaluationStatus evaluation = ExampleEvaluation(3, 0.8735, false);
  evaluation.set_versions(0, 1409);

  EXPECT_EQ(FormatEvaluation(evaluation),
            "epoch 3.02: test accuracy 87.35%, test loss 0.2500 at versions 1406 to 1409 (4000 "
            "examples in 500 ms)");
  evaluation.clear_versions();
  EXPECT_EQ(FormatEvaluation(evaluation),
            "epoch 3.02: test accuracy 87.35%, test loss 0.2500 (4000 examples in 500 ms)");
}

}  // namespace
}  // namespace slipstream
