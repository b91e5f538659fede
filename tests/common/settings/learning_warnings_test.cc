#include "common/settings/learning_warnings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace slipstream {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// DiLoCo as it is published, on four workers.
RunSpec Diloco(PolicyKind policy) {
  RunSpec run;
  run.cluster.workers = 4;
  run.consistency.policy = policy;
  run.worker.algorithm = AlgorithmKind::kDiloco;
  run.worker.outer = {.kind = RuleKind::kNesterov, .parameters = {}, .learning_rate = 0.7};
  return run;
}

TEST(LearningWarningsTest, MomentumOverStaleDeltasIsNamedWithItsRemedy) {
  for (const PolicyKind policy : {PolicyKind::kSoftsync, PolicyKind::kAsync, PolicyKind::kSsp}) {
    EXPECT_THAT(LearningWarnings(Diloco(policy)),
                ElementsAre(HasSubstr("set worker.outer.kind delayed_nesterov")));
  }
}

TEST(LearningWarningsTest, NothingIsSaidOfWhatLearns) {
  EXPECT_THAT(LearningWarnings(RunSpec()), IsEmpty());
  EXPECT_THAT(LearningWarnings(Diloco(PolicyKind::kHardsync)), IsEmpty());
  EXPECT_THAT(LearningWarnings(Diloco(PolicyKind::kBackup)), IsEmpty());
  RunSpec run = Diloco(PolicyKind::kAsync);
  run.worker.outer.kind = RuleKind::kDelayedNesterov;
  EXPECT_THAT(LearningWarnings(run), IsEmpty());
  run = Diloco(PolicyKind::kAsync);
  run.cluster.workers = 1;  // Its deltas are never stale.
  EXPECT_THAT(LearningWarnings(run), IsEmpty());
}

TEST(LearningWarningsTest, AnEarlierPolicyCountsToo) {
  RunSpec run = Diloco(PolicyKind::kHardsync);
  run.policies_before = {{.consistency = {.policy = PolicyKind::kSoftsync}, .until_epoch = 1}};

  EXPECT_THAT(LearningWarnings(run), ElementsAre(HasSubstr("under consistency.policy softsync")));
}

/// Gradients by momentum 0.9, at a rate that learns on four workers.
RunSpec Momentum(uint32_t workers) {
  RunSpec run;
  run.cluster.workers = workers;
  run.consistency.policy = PolicyKind::kAsync;
  run.optimizer.kind = RuleKind::kMomentum;
  run.optimizer.learning_rate = 0.015;
  return run;
}

TEST(LearningWarningsTest, MomentumOverManyStaleGradientsIsNamedUnlessTheyAreScaled) {
  EXPECT_THAT(LearningWarnings(Momentum(4)), IsEmpty());
  RunSpec run = Momentum(16);
  EXPECT_THAT(LearningWarnings(run), ElementsAre(HasSubstr("staleness_scaling per_gradient")));
  run.optimizer.staleness_scaling = StalenessScaling::kPerGradient;
  EXPECT_THAT(LearningWarnings(run), IsEmpty());
}

TEST(LearningWarningsTest, SumsOfGradientsCountAsOftenAsTheyAreLong) {
  RunSpec run = Momentum(4);
  run.worker.algorithm = AlgorithmKind::kDownpour;
  run.worker.outer = {.kind = RuleKind::kSgd, .parameters = {}, .learning_rate = 0.05};
  EXPECT_THAT(LearningWarnings(run), IsEmpty());
  run.worker.outer.learning_rate = 1;
  EXPECT_THAT(LearningWarnings(run), ElementsAre(HasSubstr("stale sums of gradients")));
}

TEST(LearningWarningsTest, MomentumOfLocalStepsIsNamedWherePushesAreStale) {
  RunSpec run = Momentum(4);
  run.worker.algorithm = AlgorithmKind::kLocalSgd;
  EXPECT_THAT(LearningWarnings(run), ElementsAre(HasSubstr("set optimizer.kind sgd")));
  run.optimizer.kind = RuleKind::kSgd;
  EXPECT_THAT(LearningWarnings(run), IsEmpty());
}

TEST(LearningWarningsTest, LambWithStaleGradientsIsNamed) {
  RunSpec run = Momentum(4);
  run.optimizer.kind = RuleKind::kLamb;
  run.optimizer.learning_rate = 0.01;
  EXPECT_THAT(LearningWarnings(run), ElementsAre(HasSubstr("lamb takes steps of one length")));
  run.consistency.policy = PolicyKind::kHardsync;
  EXPECT_THAT(LearningWarnings(run), IsEmpty());
}

TEST(LearningWarningsTest, AnElasticCenterThatSwingsFurtherIsNamed) {
  RunSpec run;
  run.cluster.workers = 4;
  run.worker.algorithm = AlgorithmKind::kEasgd;
  run.consistency.parameters["c"] = 8;
  EXPECT_THAT(LearningWarnings(run), IsEmpty());
  run.consistency.parameters["c"] = 16;
  EXPECT_THAT(LearningWarnings(run), ElementsAre(HasSubstr("smaller worker.elasticity")));
}

TEST(LearningWarningsTest, ARateThatIsNeverReachedIsNamed) {
  RunSpec run;
  run.training.epochs = 5;
  run.optimizer.schedule.warmup_epochs = 5;
  EXPECT_THAT(LearningWarnings(run), ElementsAre(HasSubstr("rises until the end")));

  run.optimizer.schedule = {.kind = ScheduleSpec::Kind::kStep, .at_epochs = {2, 7}};
  EXPECT_THAT(LearningWarnings(run), ElementsAre(HasSubstr("does not fall there")));
  run.training.epochs = 8;
  EXPECT_THAT(LearningWarnings(run), IsEmpty());
}

}  // namespace
}  // namespace slipstream
