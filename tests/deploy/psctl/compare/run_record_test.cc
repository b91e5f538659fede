#include "deploy/psctl/compare/run_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace slipstream {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

namespace fs = std::filesystem;

/// Makes a run directory that has only a run.yaml, and returns its path.
std::string RunFolder() {
  const fs::path folder =
      fs::path(testing::TempDir()) / testing::UnitTest::GetInstance()->current_test_info()->name();
  fs::remove_all(folder);
  fs::create_directories(folder);
  std::ofstream(folder / "run.yaml") << "model: {preset: mlp}\nseed: 3\n";
  return folder;
}

TEST(RunRecordTest, HasSettingsAndFigures) {
  const std::string run = RunFolder();
  std::ofstream(run + "/summary.json")
      << R"({"ended_by": "epochs", "test_accuracy": 0.5, "test_loss": null, "updates": 7,
             "staleness": {"mean": 1.5, "histogram": [1, 2]}})";

  const absl::StatusOr<RunRecord> record = ReadRunRecord(run);

  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_EQ(record->settings.seed, 3u);
  EXPECT_EQ(record->ended_by, "epochs");
  EXPECT_THAT(record->figures,
              ElementsAre(0.5, std::nullopt, std::nullopt, std::nullopt, 1.5, std::nullopt, 7.0));
  EXPECT_THAT(record->staleness, ElementsAre(1, 2));
}

TEST(RunRecordTest, TellsARunThatGoesOnFromOneThatFailed) {
  const std::string run = RunFolder();
  EXPECT_EQ(ReadRunRecord(run).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(ReadRunRecord(run).status().message()),
              HasSubstr(run + " has no summary.json, so its run has not finished: it has told no "
                              "figures"));

  std::ofstream(run + "/metrics.jsonl") << "{\"t\":1,\"phase\":\"INITIALIZING\"}\n"
                                        << "{\"t\":2,\"phase\":\"TRAINING\"}\n";
  EXPECT_THAT(std::string(ReadRunRecord(run).status().message()),
              HasSubstr("it still goes on, or was ended in phase TRAINING"));

  std::ofstream(run + "/metrics.jsonl", std::ios::app) << "{\"t\":3,\"phase\":\"FAILED\"}\n";
  EXPECT_THAT(std::string(ReadRunRecord(run).status().message()), HasSubstr("it has failed"));
}

TEST(RunRecordTest, SaysWhatIsNoRunDirectory) {
  const std::string run = RunFolder();

  EXPECT_THAT(std::string(ReadRunRecord(run + "/gone").status().message()),
              HasSubstr("/gone: there is no such run directory"));
  EXPECT_THAT(std::string(ReadRunRecord(run + "/run.yaml").status().message()),
              HasSubstr("/run.yaml is a file; name a run directory, as " + run));
  fs::remove(run + "/run.yaml");
  EXPECT_THAT(std::string(ReadRunRecord(run).status().message()),
              HasSubstr(run + " is no run directory: it has no run.yaml"));
  EXPECT_EQ(ReadRunRecord(run).status().code(), absl::StatusCode::kNotFound);
}

TEST(RunRecordTest, RefusesASummaryThatIsNone) {
  EXPECT_EQ(ParseRunRecord("runs/a", {}, "[1]").status().message(),
            "runs/a/summary.json is no JSON object");
  EXPECT_EQ(ParseRunRecord("runs/a", {}, "{\"a\":").status().code(), absl::StatusCode::kDataLoss);
}

constexpr char kDiverged[] =
    R"({"ended_by": "diverged", "error": "training diverged", "test_accuracy": null,
        "divergence": {"epoch": 3, "updates": 41}})";

TEST(RunRecordTest, ADivergedRunIsAResultOfChance) {
  RunSpec settings;
  settings.data.format = DataSpec::Format::kCifar10;

  const auto record = ParseRunRecord("runs/a", settings, kDiverged);

  ASSERT_TRUE(record.ok());
  EXPECT_FALSE(record->failed());
  EXPECT_EQ(record->EndText(), "diverged in epoch 3");
  EXPECT_EQ(record->divergence->updates, 41u);
  EXPECT_EQ(record->figures[kAccuracyFigure], 0.1);
}

TEST(RunRecordTest, ChanceIsUnknownWhereTheClassesAre) {
  RunSpec settings;
  settings.data.format = DataSpec::Format::kNpy;
  EXPECT_EQ(ParseRunRecord("runs/a", settings, kDiverged)->figures[kAccuracyFigure], std::nullopt);

  settings.data.format = DataSpec::Format::kSynthetic;
  settings.model.loss = ModelSpec::Loss::kMse;
  EXPECT_EQ(ParseRunRecord("runs/a", settings, kDiverged)->figures[kAccuracyFigure], std::nullopt);
}

TEST(RunRecordTest, TakesASummaryOfAFailure) {
  const auto record = ParseRunRecord("runs/a", {}, R"({"error": "server 1 was killed"})");

  ASSERT_TRUE(record.ok());
  EXPECT_EQ(record->ended_by, "failed");
}

}  // namespace
}  // namespace slipstream
