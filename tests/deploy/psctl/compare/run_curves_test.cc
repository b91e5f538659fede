#include "deploy/psctl/compare/run_curves.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace slipstream {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(RunCurvesTest, TimeBeginsWithTrainingAndEvaluationsAreThoseOfTheirBeginning) {
  const std::string metrics =
      R"({"t": 1, "phase": "WAITING_FOR_WORKERS", "examples": 0})"
      "\n"
      R"({"t": 2, "phase": "TRAINING", "examples": 0})"
      "\n"
      R"({"t": 4, "phase": "TRAINING", "examples": 200, "evaluations": [)"
      R"({"epoch": 1, "test_accuracy": 0.5, "test_loss": 2, "seconds": 0.5}]})"
      "\n"
      R"({"t": 5, "phase": "DRAINING", "examples": 500})"
      "\n"
      R"({"t": 6, "phase": "FINISHED", "examples": 500, "evaluations": [)"
      R"({"epoch": 2, "epochs_measured": 2.1, "test_accuracy": 0.75,)"
      R"( "test_loss": 1, "seconds": 1}]})"
      "\n";

  const absl::StatusOr<RunCurves> curves = ParseCurves(metrics, "metrics.jsonl");

  ASSERT_TRUE(curves.ok()) << curves.status();
  EXPECT_THAT(curves->accuracy_by_time, ElementsAre(CurvePoint{1.5, 0.5}, CurvePoint{3, 0.75}));
  EXPECT_THAT(curves->accuracy_by_epoch, ElementsAre(CurvePoint{1, 0.5}, CurvePoint{2.1, 0.75}));
  EXPECT_THAT(curves->loss_by_epoch, ElementsAre(CurvePoint{1, 2}, CurvePoint{2.1, 1}));
  ASSERT_EQ(curves->measurements.size(), 2u);
  EXPECT_EQ(curves->measurements[1].epoch, 2);
  EXPECT_EQ(curves->measurements[1].time, 3);
  // The three seconds are six parts: 100 examples per second in the first four, then 300.
  ASSERT_EQ(curves->rate_by_time.size(), 6u);
  EXPECT_EQ(curves->rate_by_time.front(), (CurvePoint{0.25, 100}));
  EXPECT_EQ(curves->rate_by_time.back(), (CurvePoint{2.75, 300}));
}

TEST(RunCurvesTest, ARunWithoutClassesHasLossesOnly) {
  const auto curves = ParseCurves(
      R"({"t": 4, "phase": "TRAINING", "evaluations": [{"epoch": 1, "test_accuracy": null,)"
      R"( "test_loss": 2, "seconds": 0}]})",
      "metrics.jsonl");

  ASSERT_TRUE(curves.ok()) << curves.status();
  EXPECT_THAT(curves->accuracy_by_time, IsEmpty());
  EXPECT_THAT(curves->loss_by_time, ElementsAre(CurvePoint{0, 2}));
  EXPECT_THAT(curves->rate_by_time, IsEmpty());
}

TEST(RunCurvesTest, NamesTheLineThatIsWrong) {
  EXPECT_EQ(ParseCurves("{\"t\": 1}\n{\"t\":", "runs/a/metrics.jsonl").status().message(),
            "runs/a/metrics.jsonl:2: no JSON object with a time \"t\"");
  EXPECT_EQ(ParseCurves("{}", "m").status().message(), "m:1: no JSON object with a time \"t\"");
  EXPECT_TRUE(ParseCurves("", "m").ok());
}

}  // namespace
}  // namespace slipstream
