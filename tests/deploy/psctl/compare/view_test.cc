#include "deploy/psctl/compare/view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

namespace slipstream {
namespace {

RunRecord RunOf(uint64_t seed, double accuracy, double seconds) {
  RunRecord run;
  run.directory = "runs/" + std::to_string(seed);
  run.settings.name = "digits";
  run.settings.seed = seed;
  run.ended_by = "target_accuracy";
  run.figures = {accuracy, 0.25, seconds, 1000, 0.5, 2, 300};
  return run;
}

TEST(ComparisonViewTest, RepetitionsAreOneLineWithIntervals) {
  RunRecord failed = RunOf(3, 0, 0);
  failed.ended_by = "failed";
  RunRecord hardsync = RunOf(1, 0.75, 40);
  hardsync.settings.consistency.policy = PolicyKind::kHardsync;
  hardsync.settings.optimizer.learning_rate = 0.5;

  const std::string table =
      ComparisonTable(GroupRuns({RunOf(1, 0.9, 9), RunOf(2, 0.92, 11), failed, hardsync}));

  EXPECT_EQ(table,
            "run     seeds  policy        ended by                      test accuracy"
            "        test loss        seconds  examples/s      staleness    p99  updates"
            "  settings\n"
            "digits      3  softsync n=1  1 failed, 2 target_accuracy  91.00 ± 12.71%"
            "  0.2500 ± 0.0000  10.00 ± 12.71    1000 ± 0  0.500 ± 0.000  2 ± 0  300 ± 0"
            "  optimizer.learning_rate=0.05\n"
            "digits      1  hardsync      target_accuracy                      75.00%"
            "           0.2500          40.00        1000          0.500      2      300"
            "  optimizer.learning_rate=0.5\n");
}

TEST(ComparisonViewTest, JsonHasTheMeansAndEveryRun) {
  const nlohmann::ordered_json json =
      ComparisonJson(GroupRuns({RunOf(1, 0.9, 9), RunOf(2, 0.92, 11)}));

  const auto& group = json["groups"][0];
  EXPECT_EQ(group["label"], "digits");
  EXPECT_EQ(group["policy"], "softsync n=1");
  EXPECT_EQ(group["ended_by"]["target_accuracy"], 2);
  EXPECT_NEAR(group["seconds"]["mean"].get<double>(), 10, 1e-12);
  EXPECT_NEAR(group["seconds"]["interval_95"].get<double>(), 12.7062, 1e-3);
  EXPECT_EQ(group["seconds"]["count"], 2);
  EXPECT_EQ(group["runs"][1]["directory"], "runs/2");
  EXPECT_EQ(group["runs"][1]["seed"], 2);
  EXPECT_EQ(group["runs"][1]["seconds"], 11);
  EXPECT_EQ(group["runs"][1]["diverged"], nullptr);
}

TEST(ComparisonViewTest, SaysWhereARunDiverged) {
  RunRecord run = RunOf(1, 0.1, 9);
  run.ended_by = "diverged";
  run.divergence = {.epoch = 2, .updates = 41};

  EXPECT_THAT(ComparisonTable(GroupRuns({run})),
              testing::HasSubstr("  diverged in epoch 2         10.00%  "));
  const auto group = ComparisonJson(GroupRuns({run}))["groups"][0];
  EXPECT_EQ(group["ended_by"]["diverged"], 1);
  EXPECT_EQ(group["runs"][0]["diverged"]["epoch"], 2);
}

TEST(ComparisonViewTest, SaysOfHowManyRunsAFigureIs) {
  RunRecord without = RunOf(2, 0.92, 11);
  without.figures[0].reset();

  EXPECT_THAT(ComparisonTable(GroupRuns({RunOf(1, 0.9, 9), without})),
              testing::HasSubstr("  90.00% (1 of 2)  "));
}

TEST(ComparisonViewTest, SaysWhereOneSeedWasTakenTwice) {
  EXPECT_THAT(ComparisonTable(GroupRuns({RunOf(1, 0.9, 9), RunOf(1, 0.92, 11)})),
              testing::HasSubstr("2 (1 different)"));
}

}  // namespace
}  // namespace slipstream
