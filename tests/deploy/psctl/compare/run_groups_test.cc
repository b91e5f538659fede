#include "deploy/psctl/compare/run_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace slipstream {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

RunRecord RunOf(uint64_t seed, double accuracy) {
  RunRecord run;
  run.settings.name = "digits";
  run.settings.seed = seed;
  run.ended_by = "epochs";
  run.figures[0] = accuracy;
  return run;
}

TEST(RunGroupsTest, RunsThatDifferInTheSeedAloneAreRepetitions) {
  const std::vector<RunGroup> groups = GroupRuns({RunOf(1, 0.9), RunOf(2, 0.8), RunOf(3, 0.7)});

  ASSERT_EQ(groups.size(), 1u);
  EXPECT_EQ(groups[0].label, "digits");
  EXPECT_THAT(groups[0].seeds(), ElementsAre(1, 2, 3));
  EXPECT_NEAR(groups[0].Mean(0)->mean, 0.8, 1e-12);
  EXPECT_EQ(groups[0].Mean(1), std::nullopt) << "no run has a loss";
  EXPECT_THAT(groups[0].differences, IsEmpty());
}

TEST(RunGroupsTest, FilesLogsAndAccessAreNoPartOfAnExperiment) {
  RunRecord other = RunOf(2, 0.8);
  other.settings.log.push_log = "runs/b";
  other.settings.model_files.save_dir = "models";
  other.settings.durability.directory = "checkpoints";
  other.settings.run.after = RunControlSpec::After::kStay;
  other.settings.security.token = "token";

  EXPECT_EQ(GroupRuns({RunOf(1, 0.9), other}).size(), 1u);
}

TEST(RunGroupsTest, GroupsOfOneNameAreToldApartByWhatDiffers) {
  RunRecord async = RunOf(1, 0.9);
  async.settings.consistency.policy = PolicyKind::kAsync;
  RunRecord faster = async;
  faster.settings.optimizer.learning_rate = 0.5;

  const std::vector<RunGroup> groups = GroupRuns({RunOf(1, 0.8), async, faster, RunOf(2, 0.7)});

  ASSERT_EQ(groups.size(), 3u);
  EXPECT_EQ(groups[0].label, "digits softsync n=1 learning_rate=0.05");
  EXPECT_EQ(groups[1].label, "digits async learning_rate=0.05");
  EXPECT_EQ(groups[2].label, "digits async learning_rate=0.5");
  EXPECT_EQ(groups[0].runs.size(), 2u);
  EXPECT_THAT(groups[2].differences, ElementsAre(Pair("consistency.policy", "async"),
                                                 Pair("optimizer.learning_rate", "0.5")));
}

TEST(RunGroupsTest, ANameThatOnlyOneGroupHasIsEnough) {
  RunRecord other = RunOf(1, 0.9);
  other.settings.name = "letters";
  other.settings.consistency.policy = PolicyKind::kAsync;

  const std::vector<RunGroup> groups = GroupRuns({RunOf(1, 0.8), other});

  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].label, "digits");
  EXPECT_EQ(groups[1].label, "letters");
}

TEST(RunGroupsTest, SaysHowManyRunsEndedHow) {
  std::vector<RunRecord> runs = {RunOf(1, 0.9), RunOf(2, 0.8), RunOf(3, 0.7)};
  EXPECT_EQ(GroupRuns(runs)[0].EndedBy(), "epochs");
  runs[2].ended_by = "target_accuracy";
  EXPECT_EQ(GroupRuns(runs)[0].EndedBy(), "2 epochs, 1 target_accuracy");
}

RunRecord DivergedAt(uint64_t seed, uint64_t epoch) {
  RunRecord run = RunOf(seed, 0.1);
  run.ended_by = "diverged";
  run.divergence = {.epoch = epoch, .updates = 9};
  run.figures[kSecondsFigure] = 1;
  return run;
}

TEST(RunGroupsTest, RunsThatDivergedCountInTheAccuracy) {
  RunRecord whole = RunOf(1, 0.9);
  whole.figures[kSecondsFigure] = 9;
  const RunGroup group = GroupRuns({whole, DivergedAt(2, 3)})[0];

  EXPECT_EQ(group.EndedBy(), "1 diverged in epoch 3, 1 epochs");
  EXPECT_NEAR(group.Mean(kAccuracyFigure)->mean, 0.5, 1e-12);
  EXPECT_EQ(group.Mean(kSecondsFigure)->mean, 9) << "the other run was shorter";
}

TEST(RunGroupsTest, AGroupThatDivergedHasTheFiguresUntilThen) {
  const RunGroup group = GroupRuns({DivergedAt(1, 3), DivergedAt(2, 3)})[0];

  EXPECT_EQ(group.EndedBy(), "diverged in epoch 3");
  EXPECT_EQ(group.Mean(kSecondsFigure)->mean, 1);
}

}  // namespace
}  // namespace slipstream
