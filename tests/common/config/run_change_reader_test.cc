#include "common/config/run_change_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <variant>
#include <vector>

#include "common/config/run_config.h"

namespace slipstream {
namespace {

using testing::HasSubstr;

RunSpec FourWorkers(const std::string& more = "") {
  const ConfigResult read = ParseRunConfig(
      "version: 1\nmodel: {preset: mlp}\ncluster: {workers: 4}\n" + more, "run.yaml");
  EXPECT_TRUE(std::holds_alternative<RunSpec>(read));
  return std::get<RunSpec>(read);
}

std::string WhyNot(const RunSpec& run, const std::vector<std::string>& changes) {
  const absl::StatusOr<RunChange> change = ReadRunChange(run, changes);
  EXPECT_FALSE(change.ok());
  return std::string(change.status().message());
}

TEST(RunChangeReaderTest, ReadsAPolicyWithItsParameters) {
  const auto change =
      ReadRunChange(FourWorkers(), {"consistency.policy=softsync", "consistency.n=2"});
  ASSERT_TRUE(change.ok()) << change.status();
  EXPECT_TRUE(change->sets_policy);
  EXPECT_EQ(change->settings.consistency.policy, PolicyKind::kSoftsync);
  EXPECT_EQ(change->settings.consistency.parameters["n"], 2);
}

TEST(RunChangeReaderTest, ParametersOfThePolicyBeforeHaveNoPart) {
  const auto change = ReadRunChange(FourWorkers("consistency: {policy: softsync, n: 4}\n"),
                                    {"consistency.policy=ssp", "consistency.slack=3"});
  ASSERT_TRUE(change.ok()) << change.status();
  EXPECT_EQ(change->settings.consistency.policy, PolicyKind::kSsp);
  EXPECT_EQ(change->settings.consistency.parameters["slack"], 3);
}

TEST(RunChangeReaderTest, ReadsARateAndLeavesTheRest) {
  RunSpec expected = FourWorkers();
  const auto change = ReadRunChange(expected, {"optimizer.learning_rate=0.5"});
  ASSERT_TRUE(change.ok()) << change.status();
  EXPECT_FALSE(change->sets_policy);
  expected.optimizer.learning_rate = 0.5;
  EXPECT_EQ(change->settings, expected);
}

TEST(RunChangeReaderTest, ATreeStaysWithThePoliciesThatGoWithIt) {
  RunSpec run = FourWorkers();
  run.cluster.tree.fanout = 2;
  EXPECT_TRUE(ReadRunChange(run, {"consistency.policy=async"}).ok());
  EXPECT_THAT(WhyNot(run, {"consistency.policy=ssp"}),
              HasSubstr("use hardsync, softsync or async"));
}

TEST(RunChangeReaderTest, SaysWhatIsWrongAsForRunYaml) {
  EXPECT_THAT(WhyNot(FourWorkers(), {"consistency.policy=softsink"}), HasSubstr("softsync"));
  EXPECT_THAT(WhyNot(FourWorkers(), {"consistency.policy=softsync", "consistency.n=9"}),
              HasSubstr("n must be at most the number of workers, 4, not 9"));
  EXPECT_THAT(WhyNot(FourWorkers(), {"optimizer.learning_rate=-1"}),
              HasSubstr("optimizer.learning_rate"));
  EXPECT_THAT(WhyNot(FourWorkers(), {"consistency.policy=ssp", "consistency.n=2"}),
              HasSubstr("\"n\" belongs to consistency.policy softsync"));
}

TEST(RunChangeReaderTest, ChangesOnlyWhatCanChange) {
  EXPECT_THAT(WhyNot(FourWorkers(), {"training.epochs=9"}),
              HasSubstr("training.epochs cannot change while a run trains"));
  EXPECT_THAT(WhyNot(FourWorkers(), {"consistency.n=2"}), HasSubstr("name the policy, too"));
  EXPECT_THAT(WhyNot(FourWorkers(), {}), HasSubstr("1 to 16 settings"));
  EXPECT_THAT(WhyNot(FourWorkers(), {std::string(300, 'x')}), HasSubstr("256 bytes"));
}

TEST(RunChangeReaderTest, FreeLanesRefuseAPolicyUnderWhichWorkersWait) {
  const RunSpec run = FourWorkers("worker: {lanes: free}\n");
  EXPECT_THAT(WhyNot(run, {"consistency.policy=ssp"}),
              HasSubstr("consistency.policy ssp: workers wait for others"));
  EXPECT_TRUE(ReadRunChange(run, {"consistency.policy=async"}).ok());
}

TEST(RunChangeReaderTest, WorkersKeepTheRateOfTheirOwnSteps) {
  const RunSpec run = FourWorkers("worker: {algorithm: local_sgd}\n");
  EXPECT_THAT(WhyNot(run, {"optimizer.learning_rate=0.5"}),
              HasSubstr("worker.outer.learning_rate can change"));
  const auto change = ReadRunChange(run, {"worker.outer.learning_rate=0.5"});
  ASSERT_TRUE(change.ok()) << change.status();
  EXPECT_EQ(change->settings.worker.outer.learning_rate, 0.5);
}

}  // namespace
}  // namespace slipstream
