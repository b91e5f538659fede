#include "deploy/psctl/run/evaluate_command.h"

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

std::string FreshFolder() {
  const fs::path folder =
      fs::path(testing::TempDir()) / testing::UnitTest::GetInstance()->current_test_info()->name();
  fs::remove_all(folder);
  fs::create_directories(folder);
  return folder;
}

TEST(EvaluateCommandTest, MeasuresTheFinalModelOfARunDirectoryUnderItsSettings) {
  const std::string run = FreshFolder();
  std::ofstream(run + "/model.safetensors") << "x";

  const auto arguments = EvaluatorArguments({.model = run, .format = OutputFormat::kJson});

  ASSERT_TRUE(arguments.ok()) << arguments.status();
  EXPECT_THAT(*arguments, ElementsAre("--model", run + "/model.safetensors", "--config",
                                      run + "/run.yaml", "-o", "json"));
}

TEST(EvaluateCommandTest, LetsAFileTellItsSettingsItself) {
  const auto arguments =
      EvaluatorArguments({.model = "a.safetensors", .overrides = {"data.path=/d", "seed=3"}});

  ASSERT_TRUE(arguments.ok()) << arguments.status();
  EXPECT_THAT(*arguments, ElementsAre("--model", "a.safetensors", "--set", "data.path=/d", "--set",
                                      "seed=3", "-o", "table"));
}

TEST(EvaluateCommandTest, TakesOtherSettingsIfTheyAreNamed) {
  const std::string run = FreshFolder();
  std::ofstream(run + "/model.safetensors") << "x";

  const auto arguments = EvaluatorArguments({.model = run, .config = "other.yaml"});

  ASSERT_TRUE(arguments.ok()) << arguments.status();
  EXPECT_THAT(*arguments, ElementsAre("--model", run + "/model.safetensors", "--config",
                                      "other.yaml", "-o", "table"));
}

TEST(EvaluateCommandTest, SaysThatARunDirectoryKeepsNoModel) {
  const std::string run = FreshFolder();

  const auto arguments = EvaluatorArguments({.model = run});

  ASSERT_EQ(arguments.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(arguments.status().message()),
              HasSubstr(run + " keeps no model.safetensors"));
}

}  // namespace
}  // namespace slipstream
