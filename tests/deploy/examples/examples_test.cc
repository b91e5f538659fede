#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <variant>

#include "common/config/run_config.h"
#include "common/settings/learning_warnings.h"

namespace slipstream {
namespace {

RunSpec Example(const std::string& name, const Overrides& overrides = {}) {
  const ConfigResult result = LoadRunConfig("deploy/examples/" + name + ".yaml", overrides);
  if (const auto* diagnostics = std::get_if<std::vector<Diagnostic>>(&result)) {
    ADD_FAILURE() << ToString(*diagnostics);
    return {};
  }
  return std::get<RunSpec>(result);
}

TEST(ExamplesTest, TheQuickstartNeedsNoFiles) {
  const RunSpec spec = Example("quickstart");

  EXPECT_EQ(spec.data.format, DataSpec::Format::kSynthetic);
  EXPECT_EQ(spec.cluster.servers.size(), 2u);
  EXPECT_EQ(spec.cluster.workers, 4u);
}

TEST(ExamplesTest, TheRegressionReadsATable) {
  const RunSpec spec = Example("regression");

  EXPECT_EQ(spec.data.format, DataSpec::Format::kCsv);
  EXPECT_EQ(spec.model.loss, ModelSpec::Loss::kMse);
}

TEST(ExamplesTest, OneOfTheUnevenMachinesIsSlowUnderEveryPolicy) {
  for (const char* policy : {"async", "softsync", "hardsync"}) {
    const RunSpec spec = Example(
        "uneven", {.set = {std::string("consistency.policy=") + policy}, .environment = {}});
    const absl::Duration slow = spec.testing.SlowdownOf(WorkerId{3}).delay;

    EXPECT_GT(slow, 5 * spec.testing.SlowdownOf(WorkerId{0}).delay) << policy;
    EXPECT_EQ(spec.testing.SlowdownOf(WorkerId{0}), spec.testing.SlowdownOf(WorkerId{2}));
  }
}

TEST(ExamplesTest, RudrasNetDecaysItsLastLayerMost) {
  const RunSpec spec = Example("rudra_cifar");
  const auto& items = spec.optimizer.per_tensor;

  EXPECT_TRUE(std::holds_alternative<DenseLayer>(spec.model.layers[12]));
  EXPECT_EQ(items[*FindTensorOptions(items, "12.weight")].weight_decay, 1.0);
  EXPECT_EQ(items[*FindTensorOptions(items, "12.bias")].learning_rate_factor, 2.0);
  EXPECT_FALSE(FindTensorOptions(items, "8.weight").has_value());
}

TEST(ExamplesTest, NoneIsWarnedOf) {
  for (const auto& entry : std::filesystem::recursive_directory_iterator("deploy/examples")) {
    if (entry.path().extension() != ".yaml") continue;
    const ConfigResult result = LoadRunConfig(entry.path());
    ASSERT_TRUE(std::holds_alternative<RunSpec>(result)) << entry.path();
    EXPECT_THAT(LearningWarnings(std::get<RunSpec>(result)), testing::IsEmpty()) << entry.path();
  }
}

TEST(ExamplesTest, ServersThatRestartSaveOftenEnoughToSeeIt) {
  const RunSpec spec = Example("restart");

  EXPECT_TRUE(spec.durability.saves());
  EXPECT_LE(spec.durability.interval, absl::Seconds(2));
  EXPECT_EQ(spec.durability.directory, "") << "psctl run has its own";
}

TEST(ExamplesTest, ThePoliciesAreComparedOnTheSameWork) {
  const RunSpec hardsync = Example("hardsync");
  EXPECT_EQ(hardsync.consistency.policy, ConsistencySpec::Policy::kHardsync);
  EXPECT_EQ(Example("softsync").consistency.policy, ConsistencySpec::Policy::kSoftsync);
  EXPECT_EQ(Example("async").consistency.policy, ConsistencySpec::Policy::kAsync);

  for (const char* name : {"softsync", "async"}) {
    const RunSpec spec = Example(name);
    EXPECT_EQ(spec.model, hardsync.model) << name;
    EXPECT_EQ(spec.data, hardsync.data) << name;
    EXPECT_EQ(spec.training, hardsync.training) << name;
    EXPECT_EQ(spec.cluster, hardsync.cluster) << name;
    EXPECT_EQ(spec.seed, hardsync.seed) << name;
  }
}

}  // namespace
}  // namespace slipstream
