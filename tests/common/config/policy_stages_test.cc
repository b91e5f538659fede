#include <gtest/gtest.h>

#include <string>

#include "common/config/run_config.h"
#include "common/config/run_text.h"
#include "common/settings/run_spec.h"

// Tests of runs whose first epochs have other policies.

namespace slipstream {
namespace {

RunSpec SpecOf(const std::string& consistency) {
  const std::string text =
      "model: {preset: mlp}\ncluster: {workers: 4}\ntraining: {epochs: 6}\nconsistency:" +
      consistency;
  absl::StatusOr<RunSpec> spec = ToStatusOr(ParseRunConfig(text, "run.yaml", {}));
  EXPECT_TRUE(spec.ok()) << spec.status();
  return spec.ok() ? *spec : RunSpec();
}

constexpr const char* kList = R"(
  - {policy: hardsync, until_epoch: 2}
  - {policy: softsync, n: 2, until_epoch: 4}
  - policy: async
    max_staleness: {action: drop, bound: 8}
)";

TEST(PolicyStagesTest, AListHasTheSectionAsItsLastItem) {
  const RunSpec list = SpecOf(kList);
  EXPECT_EQ(list, SpecOf(" {policy: async, max_staleness: {action: drop, bound: 8}, before: "
                         "[{policy: hardsync, until_epoch: 2}, {policy: softsync, n: 2, "
                         "until_epoch: 4}]}"));
  const std::vector<PolicyStage> stages = list.stages();
  ASSERT_EQ(stages.size(), 3u);
  EXPECT_EQ(stages[0].consistency.policy, PolicyKind::kHardsync);
  EXPECT_EQ(stages[1].consistency.round_size(4), 2u);
  EXPECT_EQ(stages[1].consistency.max_staleness.bound, 8u);  // It holds for all.
  EXPECT_EQ(stages[2].until_epoch, 6u);
}

TEST(PolicyStagesTest, TheCanonicalTextReadsBackAsTheSameRun) {
  const RunSpec spec = SpecOf(kList);
  const absl::StatusOr<RunSpec> again = ToStatusOr(ParseRunConfig(ToYaml(spec), "again", {}));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, spec);
}

TEST(PolicyStagesTest, AFlagReplacesTheWholeList) {
  Overrides overrides;
  overrides.set = {"consistency.before=[{policy: ssp, slack: 3, until_epoch: 1}]"};
  const absl::StatusOr<RunSpec> spec = ToStatusOr(
      ParseRunConfig("model: {preset: mlp}\ntraining: {epochs: 2}\nconsistency: {policy: async}",
                     "run.yaml", overrides));
  ASSERT_TRUE(spec.ok()) << spec.status();
  ASSERT_EQ(spec->policies_before.size(), 1u);
  EXPECT_EQ(spec->policies_before[0].consistency.parameters["slack"], 3);
}

}  // namespace
}  // namespace slipstream
