#include "deploy/psctl/progress_view.h"

#include <gtest/gtest.h>

#include "tests/deploy/psctl/example_status.h"

namespace slipstream {
namespace {

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

TEST(ProgressViewTest, DrawsABarOfTheTerminalsWidth) {
  EXPECT_EQ(FormatProgressBar(ExampleStatus(), 4, 60),
            "[======                  ]  25.0%  epoch 2/4  loss 0.5000  a");
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
  EXPECT_EQ(FormatEvaluation(ExampleEvaluation(3, 0.8735, false)),
            "epoch 3: test accuracy 87.35%, test loss 0.2500 (4000 examples in 0.5 s)");
}

}  // namespace
}  // namespace slipstream
