#include "worker/training/model_keeper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <variant>
#include <vector>

#include "common/config/run_config.h"
#include "common/model/presets.h"
#include "common/model_file/model_file.h"
#include "common/model_file/weights_digest.h"

namespace slipstream {
namespace {

using testing::HasSubstr;

namespace fs = std::filesystem;

RunSpec Settings() {
  RunSpec settings;
  settings.name = "demo";
  settings.seed = 7;
  settings.model = *FindPreset("mlp");
  return settings;
}

constexpr uint64_t kRun = 7;

/// A small model of two weights, in an empty directory.
class ModelKeeperTest : public testing::Test {
 protected:
  ModelKeeperTest()
      : folder_(fs::path(testing::TempDir()) /
                testing::UnitTest::GetInstance()->current_test_info()->name()) {
    fs::remove_all(folder_);
    EXPECT_TRUE(layout_.Append("w", {2}).ok());
  }

  ModelFacts Facts(uint32_t epoch, bool is_final) const {
    return {.epoch = epoch,
            .is_final = is_final,
            .versions = {Version{12}, Version{13}},
            .measures = {.loss = 0.5, .accuracy = 0.875},
            .test_examples = 1000,
            .weights_sha256 = WeightsSha256(weights_)};
  }

  const fs::path folder_;
  TensorLayout layout_;
  const std::vector<float> weights_ = {1.0f, -2.0f};
};

TEST_F(ModelKeeperTest, NamesModelsByEpochAndTheFinalOneForWhatItIs) {
  const ModelKeeper keeper(kRun, {folder_ / "made"}, Settings(), layout_);

  const auto on_the_way = keeper.Keep(Facts(5, false), weights_);
  const auto final = keeper.Keep(Facts(10, true), weights_);

  ASSERT_TRUE(on_the_way.ok() && final.ok());
  EXPECT_EQ(*on_the_way, (folder_ / "made/model-epoch-0005.safetensors").string());
  EXPECT_EQ(*final, (folder_ / "made/model.safetensors").string());
  EXPECT_TRUE(fs::exists(*on_the_way) && fs::exists(*final));
}

TEST_F(ModelKeeperTest, RemovesWhatAWorkerWasKilledAtLongAgo) {
  const fs::path left = folder_ / "model-epoch-0004.safetensors.0123456789abcdef.unfinished";
  fs::create_directories(folder_);
  std::ofstream(left) << "half";
  fs::last_write_time(left, fs::file_time_type::clock::now() - std::chrono::hours(2));

  ASSERT_TRUE(
      ModelKeeper(kRun, {folder_}, Settings(), layout_).Keep(Facts(5, false), weights_).ok());

  EXPECT_FALSE(fs::exists(left));
}

TEST_F(ModelKeeperTest, WritesTheWeightsWithAllThatIsKnownOfThem) {
  const ModelKeeper keeper(kRun, {folder_}, Settings(), layout_);
  const auto path = keeper.Keep(Facts(10, true), weights_);
  ASSERT_TRUE(path.ok()) << path.status();

  const auto file = ModelFile::Open(*path);
  ASSERT_TRUE(file.ok()) << file.status();
  std::vector<float> read(2);
  ASSERT_TRUE(file->Read(layout_, read).ok());

  EXPECT_EQ(read, weights_);
  const ModelMetadata& metadata = file->metadata();
  EXPECT_EQ(metadata.at("run"), "demo");
  EXPECT_EQ(metadata.at("run_id"), "0000000000000007");
  EXPECT_EQ(metadata.at("seed"), "7");
  EXPECT_EQ(metadata.at("preset"), "mlp");
  EXPECT_EQ(metadata.at("data_format"), "synthetic");
  EXPECT_EQ(metadata.at("epoch"), "10");
  EXPECT_EQ(metadata.at("final"), "true");
  EXPECT_EQ(metadata.at("versions"), "12,13");
  EXPECT_EQ(metadata.at("test_accuracy"), "0.875");
  EXPECT_EQ(metadata.at("test_loss"), "0.5");
  EXPECT_EQ(metadata.at("weights_sha256"), WeightsSha256(weights_));
}

TEST_F(ModelKeeperTest, TheSettingsInTheMetadataAreThoseOfTheRun) {
  RunSpec settings = Settings();
  settings.model = {.preset = "",
                    .input = {1, 28, 28},
                    .layers = {FlattenLayer{}, DenseLayer{12}, ReluLayer{}, DenseLayer{10}}};

  const ModelMetadata metadata = DescribeModel(settings, Facts(1, false));

  const ConfigResult read = ParseRunConfig(metadata.at(kModelSettings), "metadata");
  ASSERT_TRUE(std::holds_alternative<RunSpec>(read));
  EXPECT_EQ(std::get<RunSpec>(read), settings);
  EXPECT_THAT(metadata.at("layers"), HasSubstr("dense: {units: 12}"));
  EXPECT_EQ(metadata.count("preset"), 0u);
}

TEST_F(ModelKeeperTest, TheMetadataAreSilentOfAModelThatTheSettingsDoNotDescribe) {
  RunSpec settings = Settings();
  settings.model_from = SuppliedBy::kWorkers;
  settings.data.from = SuppliedBy::kWorkers;

  const ModelMetadata metadata = DescribeModel(settings, Facts(1, true));

  EXPECT_EQ(metadata.at("run"), "demo");
  for (const char* key : {"preset", "layers", "data_format"}) EXPECT_EQ(metadata.count(key), 0u);
}

TEST_F(ModelKeeperTest, SaysWhatCannotBeWritten) {
  fs::create_directories(folder_);
  std::ofstream(folder_ / "file") << "x";
  const ModelKeeper keeper(kRun, {folder_ / "file"}, Settings(), layout_);

  const auto path = keeper.Keep(Facts(1, true), weights_);

  ASSERT_EQ(path.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(path.status().message()), HasSubstr((folder_ / "file").string()));
}

TEST_F(ModelKeeperTest, SavesInTheFirstDirectoryThatWorks) {
  fs::create_directories(folder_);
  std::ofstream(folder_ / "file") << "x";
  const ModelKeeper keeper(kRun, {folder_ / "file", "", folder_ / "good"}, Settings(), layout_);

  EXPECT_TRUE(keeper.Try().ok());
  const auto path = keeper.Keep(Facts(1, true), weights_);

  ASSERT_TRUE(path.ok()) << path.status();
  EXPECT_EQ(*path, (folder_ / "good/model.safetensors").string());
  EXPECT_FALSE(ModelKeeper(kRun, {"", ""}, Settings(), layout_).keeps());
}

TEST_F(ModelKeeperTest, TakesNoOtherDirectoryWhereAModelOfAnotherRunStandsInTheWay) {
  ASSERT_TRUE(
      ModelKeeper(kRun, {folder_}, Settings(), layout_).Keep(Facts(2, false), weights_).ok());
  RunSpec settings = Settings();
  settings.model_files.save_every_epochs = 2;

  const ModelKeeper other(kRun + 1, {folder_, folder_ / "good"}, settings, layout_);

  EXPECT_THAT(std::string(other.Try().message()), HasSubstr("model-epoch-0002.safetensors is the"));
  EXPECT_FALSE(other.Keep(Facts(2, false), weights_).ok());
}

TEST_F(ModelKeeperTest, TryingFindsADirectoryThatCannotBeWrittenAndLeavesNothing) {
  fs::create_directories(folder_);
  std::ofstream(folder_ / "file") << "x";

  const absl::Status tried = ModelKeeper(kRun, {folder_ / "file"}, Settings(), layout_).Try();

  EXPECT_EQ(tried.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(tried.message()), HasSubstr((folder_ / "file").string()));
  EXPECT_TRUE(ModelKeeper(kRun, {folder_ / "good"}, Settings(), layout_).Try().ok());
  EXPECT_TRUE(fs::is_empty(folder_ / "good"));
}

TEST_F(ModelKeeperTest, ReplacesModelsOfItsOwnRunAndOthersOnlyIfItMay) {
  const ModelKeeper keeper(kRun, {folder_}, Settings(), layout_);
  ASSERT_TRUE(keeper.Keep(Facts(1, true), weights_).ok());
  EXPECT_TRUE(keeper.Try().ok());
  EXPECT_TRUE(keeper.Keep(Facts(1, true), weights_).ok());

  const ModelKeeper other(kRun + 1, {folder_}, Settings(), layout_);
  for (const absl::Status& status : {other.Try(), other.Keep(Facts(1, true), weights_).status()}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(std::string(status.message()), HasSubstr("the model of another run, demo"));
    EXPECT_THAT(std::string(status.message()), HasSubstr("--overwrite"));
  }
  std::ofstream(folder_ / "model.safetensors") << "not a model";
  EXPECT_THAT(std::string(keeper.Try().message()), HasSubstr("no model of this run"));

  RunSpec overwrites = Settings();
  overwrites.model_files.overwrite = true;
  const ModelKeeper may(kRun + 1, {folder_}, overwrites, layout_);
  EXPECT_TRUE(may.Try().ok());
  EXPECT_TRUE(may.Keep(Facts(1, true), weights_).ok());
}

}  // namespace
}  // namespace slipstream
