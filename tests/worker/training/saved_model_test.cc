#include "worker/training/saved_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <variant>
#include <vector>

#include "common/model/net_shapes.h"
#include "common/model/presets.h"
#include "common/model_file/weights_digest.h"
#include "worker/model/initial_values.h"
#include "worker/training/model_keeper.h"

namespace slipstream {
namespace {

using testing::HasSubstr;

namespace fs = std::filesystem;

/// A file with the initial weights of an mlp.
class SavedModelTest : public testing::Test {
 protected:
  SavedModelTest()
      : folder_(fs::path(testing::TempDir()) /
                testing::UnitTest::GetInstance()->current_test_info()->name()) {
    fs::remove_all(folder_);
    settings_.name = "demo";
    settings_.model = *FindPreset("mlp");
    settings_.data.train_examples = 100;
    settings_.data.test_examples = 300;
    const NetShapes net = std::get<NetShapes>(InferShapes(settings_.model));
    std::vector<float> weights(net.layout.parameters());
    FillInitialValues(net.layout, settings_.seed, weights);
    sha256_ = WeightsSha256(weights);
    const ModelKeeper keeper(7, {folder_}, settings_, net.layout);
    path_ = *keeper.Keep({.is_final = true, .weights_sha256 = sha256_}, weights);
  }

  absl::StatusOr<RunSpec> SettingsWith(const Overrides& overrides) const {
    return SettingsOf(*ModelFile::Open(path_), path_, std::nullopt, overrides);
  }

  const fs::path folder_;
  RunSpec settings_;
  std::string sha256_;
  std::string path_;
};

TEST_F(SavedModelTest, IsMeasuredWithWhatTheFileAloneTells) {
  const auto settings = SettingsWith({});
  ASSERT_TRUE(settings.ok()) << settings.status();
  const auto result = EvaluateModel(*ModelFile::Open(path_), *settings);

  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(*settings, settings_);
  EXPECT_EQ(result->name, "demo");
  EXPECT_EQ(result->examples, 300u);
  EXPECT_EQ(result->weights_sha256, sha256_);
  EXPECT_GT(result->measures.loss, 0);
}

TEST_F(SavedModelTest, OverridesWhatTheFileTells) {
  const auto settings = SettingsWith({.set = {"data.test_examples=200"}});

  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_EQ(settings->data.test_examples, 200u);
  EXPECT_THAT(std::string(SettingsWith({.set = {"seed=x"}}).status().message()),
              HasSubstr("--set seed"));
}

TEST_F(SavedModelTest, OfAnotherNetIsRefusedNamingTensorAndShapes) {
  settings_.model = *FindPreset("lenet5");

  const auto result = EvaluateModel(*ModelFile::Open(path_), settings_);

  ASSERT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(result.status().message()), HasSubstr("model.safetensors: "));
  EXPECT_THAT(std::string(result.status().message()), HasSubstr("[6, 1, 5, 5]"));
}

TEST_F(SavedModelTest, NamesDataThatAreMissing) {
  settings_.data.format = DataSpec::Format::kIdx;
  settings_.data.path = folder_ / "nowhere";

  const auto result = EvaluateModel(*ModelFile::Open(path_), settings_);

  ASSERT_EQ(result.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(result.status().message()), HasSubstr("nowhere"));
}

TEST_F(SavedModelTest, OfAnotherProgramNeedsSettingsThatAreNamed) {
  TensorLayout layout;
  ASSERT_TRUE(layout.Append("w", {1}).ok());
  const std::string foreign = folder_ / "foreign.safetensors";
  ASSERT_TRUE(WriteModelFile(foreign, layout, {}, std::vector<float>{1.0f}).ok());

  const auto settings = SettingsOf(*ModelFile::Open(foreign), foreign, std::nullopt, {});

  ASSERT_EQ(settings.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(settings.status().message()), HasSubstr("--config"));
}

}  // namespace
}  // namespace slipstream
