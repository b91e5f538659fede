#include "common/policy/policy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "common/policy/learning_rate.h"
#include "common/policy/staleness_compensation.h"
#include "common/settings/policy_rows.h"
#include "tests/support/specs.h"

namespace slipstream {
namespace {

using Kind = ConsistencySpec::Policy;
using Scaling = OptimizerSpec::StalenessScaling;
using Action = StalenessGuardSpec::Action;

ConsistencySpec Blocked(Kind kind, uint64_t bound) {
  return {.policy = kind, .max_staleness = {.action = Action::kBlock, .bound = bound}};
}

TEST(HogwildPolicyTest, EachGradientIsAnUpdateAndNobodyWaits) {
  const auto policy = MakePolicy({Kind::kHogwild});
  const MemberFacts member;
  const ShardFacts shard = {.decided = Version{7}, .contributions = 1, .member_count = 3};
  EXPECT_TRUE(policy->Lacks(shard).none());
  EXPECT_EQ(policy->Admit(shard, {.member = member, .base = Version{0}}).kind,
            Admission::Kind::kJoin);
  const PullCondition condition = policy->PullWaitsFor(shard, {.member = member});
  EXPECT_EQ(condition.version, Version{0});
  EXPECT_EQ(condition.slowest, WorkerClock{0});
}

TEST(HardsyncPolicyTest, LacksWhoOwesAndHasNotBeenHeard) {
  const auto policy = MakePolicy({Kind::kHardsync});
  EXPECT_TRUE(policy->Lacks({.contributions = 3, .awaited = 1}).each_awaited);
  EXPECT_TRUE(policy->Lacks({.contributions = 3}).none());
}

TEST(HardsyncPolicyTest, ClosesOnExcusesAloneButNotOnNothing) {
  const auto policy = MakePolicy({Kind::kHardsync});
  EXPECT_TRUE(policy->Lacks({.excused = 2}).none());

  EXPECT_FALSE(policy->Lacks({}).none());
}

struct CountCase {
  std::string name;
  ConsistencySpec spec;
  uint32_t members;
  ShardFacts shard;
  uint32_t lacks;
};

class CountedRound : public testing::TestWithParam<CountCase> {};

TEST_P(CountedRound, LacksGradientsOfWhomever) {
  ShardFacts shard = GetParam().shard;
  shard.member_count = GetParam().members;

  const Lack lack = MakePolicy(GetParam().spec)->Lacks(shard);

  EXPECT_EQ(lack.gradients, GetParam().lacks);
  EXPECT_FALSE(lack.each_awaited);
}

INSTANTIATE_TEST_SUITE_P(
    Policies, CountedRound,
    testing::Values(
        CountCase{"SoftsyncOneWaitsForAsManyAsThereAreMembers",
                  {Kind::kSoftsync},
                  4,
                  {.contributions = 3},
                  1},
        CountCase{"SoftsyncTwoOfFourClosesWithTwo", Softsync(2), 4, {.contributions = 2}, 0},
        CountCase{"SoftsyncRoundsTheSizeDown", Softsync(2), 5, {.contributions = 2}, 0},
        CountCase{
            "SoftsyncWithFewerMembersThanNClosesWithOne", Softsync(4), 3, {.contributions = 1}, 0},
        CountCase{"SoftsyncDrainingClosesWithWhatThereIs",
                  {Kind::kSoftsync},
                  4,
                  {.contributions = 1, .is_draining = true},
                  0},
        CountCase{"SoftsyncDrainingLeavesAnEmptyRoundOpen",
                  {Kind::kSoftsync},
                  4,
                  {.is_draining = true},
                  1},
        CountCase{"SoftsyncNoLongerHeldBackWaitsForNobodyWhoJoined",
                  Blocked(Kind::kSoftsync, 9),
                  5,
                  {.contributions = 4, .was_held_back = true},
                  0},
        CountCase{"AsyncClosesWithEveryGradient", {Kind::kAsync}, 4, {.contributions = 1}, 0}),
    [](const auto& tested) { return tested.param.name; });

TEST(BlockingGuardTest, HoldsAFullRoundBackForGradientsThatWouldBeTooStale) {
  const auto policy = MakePolicy(Blocked(Kind::kAsync, 2));
  ShardFacts shard = {.decided = Version{4}, .contributions = 1, .oldest_base = Version{3}};
  EXPECT_TRUE(policy->Lacks(shard).none());

  shard.decided = Version{5};
  EXPECT_EQ(policy->Lacks(shard).bases_before, Version{4});
  EXPECT_TRUE(policy->Lacks(shard).is_held_back());

  shard.is_draining = true;
  EXPECT_TRUE(policy->Lacks(shard).none());
}

TEST(BlockingGuardTest, WhoHasAGradientInTheRoundWaitsAtTheFirstShardButNeverForItself) {
  const auto policy = MakePolicy(Blocked(Kind::kAsync, 0));
  const MemberFacts heard = {.heard = true};
  const MemberFacts unheard;
  ShardFacts shard = {.decided = Version{5}, .contributions = 1, .oldest_base = Version{5}};
  const auto waits = [&](const PullFacts& pull) {
    return policy->PullWaitsFor(shard, pull).version == Version{6};
  };

  EXPECT_TRUE(waits({.member = heard, .after_push = true}));
  EXPECT_TRUE(waits({.member = heard}));
  EXPECT_FALSE(waits({.member = heard, .after_push = true, .has_beside = true}));
  EXPECT_FALSE(waits({.member = unheard}));
  shard.is_first = false;
  EXPECT_FALSE(waits({.member = heard, .after_push = true}));
}

struct AdmitCase {
  std::string name;
  ConsistencySpec spec;
  bool is_heard;
  uint64_t base;
  Admission::Kind kind;
};

class Admitting : public testing::TestWithParam<AdmitCase> {};

TEST_P(Admitting, AGradientToTheRoundThatStartsFromVersion20) {
  const MemberFacts member = {.heard = GetParam().is_heard};

  const Admission admission =
      MakePolicy(GetParam().spec)
          ->Admit({.decided = Version{20}}, {.member = member, .base = Version{GetParam().base}});

  EXPECT_EQ(admission.kind, GetParam().kind);
}

INSTANTIATE_TEST_SUITE_P(
    Policies, Admitting,
    testing::Values(
        AdmitCase{"HardsyncTakesItsOwnBase", {Kind::kHardsync}, false, 20, Admission::Kind::kJoin},
        AdmitCase{"HardsyncTakesNoOlderOne", {Kind::kHardsync}, false, 19, Admission::Kind::kLate},
        AdmitCase{"HardsyncTakesOneOfAMember", {Kind::kHardsync}, true, 20, Admission::Kind::kLate},
        AdmitCase{"SoftsyncTakesAnyAge", {Kind::kSoftsync}, true, 1, Admission::Kind::kJoin},
        AdmitCase{"AsyncTakesAnyAge", {Kind::kAsync}, true, 0, Admission::Kind::kJoin},
        AdmitCase{"BlockTakesUpToItsBound", Blocked(Kind::kAsync, 4), false, 16,
                  Admission::Kind::kJoin},
        AdmitCase{"BlockRefusesBeyondIt", Blocked(Kind::kAsync, 4), false, 15,
                  Admission::Kind::kTooStale},
        AdmitCase{"DropAcknowledgesBeyondIt",
                  {.policy = Kind::kAsync, .max_staleness = {.action = Action::kDrop, .bound = 4}},
                  false,
                  15,
                  Admission::Kind::kDrop},
        AdmitCase{"ScaleTakesAll",
                  {.policy = Kind::kAsync, .max_staleness = {.action = Action::kScale, .bound = 4}},
                  false,
                  15,
                  Admission::Kind::kJoin}),
    [](const auto& tested) { return tested.param.name; });

std::unique_ptr<const StalenessCompensation> Compensation(Scaling kind) {
  return MakeCompensation({.staleness_scaling = kind});
}

TEST(BackupTest, WaitsForAllMembersButSoMany) {
  ConsistencySpec spec = {.policy = Kind::kBackup};
  spec.parameters["backups"] = 1;
  const auto policy = MakePolicy(spec);
  const MemberFacts unheard;
  ShardFacts shard = {.member_count = 4, .awaited = 4};
  EXPECT_EQ(policy->Lacks(shard).gradients, 3u);

  shard.awaited = 2;
  shard.contributions = 2;
  EXPECT_EQ(policy->Lacks(shard).gradients, 1u);
  EXPECT_FALSE(policy->Lacks(shard).each_awaited);

  shard.awaited = 1;
  shard.contributions = 3;
  EXPECT_TRUE(policy->Lacks(shard).none());
  EXPECT_EQ(policy->Admit(shard, {.member = unheard}).kind, Admission::Kind::kJoin);
  shard.decided = Version{1};
  EXPECT_EQ(policy->Admit(shard, {.member = unheard}).kind, Admission::Kind::kLate);
}

TEST(BackupTest, WaitsForWhoeverIsAtWorkWhereAllOthersAreExcused) {
  const auto policy = MakePolicy({.policy = Kind::kBackup});
  const ShardFacts shard = {.excused = 3, .member_count = 4, .awaited = 1};

  EXPECT_EQ(policy->Lacks(shard).gradients, 1u);
}

TEST(SspTest, WaitsForTheSlowestButForItsSlack) {
  ConsistencySpec spec = {.policy = Kind::kSsp};
  spec.parameters["slack"] = 3;
  const ShardFacts shard = {.decided = Version{20}};
  const auto waits_for = [&](uint64_t clock) {
    const MemberFacts member = {.clock = WorkerClock{clock}};
    return MakePolicy(spec)->PullWaitsFor(shard, {.member = member, .after_push = true});
  };

  EXPECT_EQ(waits_for(2).slowest, WorkerClock{0});
  EXPECT_EQ(waits_for(3).slowest, WorkerClock{0});
  EXPECT_EQ(waits_for(10).slowest, WorkerClock{7});
  EXPECT_EQ(waits_for(10).version, Version{0});
}

TEST(PolicyRowsTest, AreFoundByTheirNames) {
  for (const PolicyRow& row : kPolicyRows) EXPECT_EQ(&RowOf(row.kind), &row);
  EXPECT_EQ(RowOf(Kind::kSoftsync).name, "softsync");
}

TEST(StalenessScalingTest, DividesOneGradientByItsStaleness) {
  EXPECT_EQ(Compensation(Scaling::kPerGradient)->GradientFactor(0), 1.0);
  EXPECT_EQ(Compensation(Scaling::kPerGradient)->GradientFactor(1), 1.0);
  EXPECT_EQ(Compensation(Scaling::kPerGradient)->GradientFactor(4), 0.25);
  EXPECT_EQ(Compensation(Scaling::kNone)->GradientFactor(4), 1.0);
  EXPECT_EQ(Compensation(Scaling::kMean)->GradientFactor(4), 1.0);
}

TEST(StalenessScalingTest, DividesARoundByTheMeanStalenessButNeverRaisesIt) {
  EXPECT_EQ(Compensation(Scaling::kMean)->RoundFactor(0.5), 1.0);
  EXPECT_EQ(Compensation(Scaling::kMean)->RoundFactor(4.0), 0.25);
  EXPECT_EQ(Compensation(Scaling::kPerGradient)->RoundFactor(4.0), 1.0);
}

/// The figures are FedAsync's: a = 1/2; g = 1, α₀ = 1 and σ = 0, 1, 2 in turn lead to θ = −1,
/// −1.7071, −2.2845.
TEST(StalenessScalingTest, PolynomialTakesAPowerOfTheStaleness) {
  double theta = 0;
  std::vector<double> path;
  for (const uint64_t staleness : {0, 1, 2}) {
    theta -= Compensation(Scaling::kPolynomial)->GradientFactor(staleness);
    path.push_back(theta);
  }
  EXPECT_EQ(path[0], -1);
  EXPECT_NEAR(path[1], -1.7071, 5e-5);
  EXPECT_NEAR(path[2], -2.2845, 5e-5);
}

/// The weights of FedBuff as NVFlare has them: 1/(1 + √σ).
TEST(StalenessScalingTest, InverseSqrtTakesTheRootOfTheStaleness) {
  const auto factor = [](uint64_t staleness) {
    return Compensation(Scaling::kInverseSqrt)->GradientFactor(staleness);
  };
  EXPECT_EQ(factor(0), 1);
  EXPECT_EQ(factor(1), 0.5);
  EXPECT_EQ(factor(9), 0.25);
}

TEST(LearningRateTest, IsConstantByDefault) {
  const LearningRate rate(0.5, {}, {.examples_per_epoch = 100, .epochs = 3});

  EXPECT_EQ(rate.At(0), 0.5);
  EXPECT_EQ(rate.At(1'000'000), 0.5);
}

TEST(LearningRateTest, StepsDownAtTheNamedEpochs) {
  const ScheduleSpec steps = {
      .kind = ScheduleSpec::Kind::kStep, .at_epochs = {1, 2}, .factor = 0.1};
  const LearningRate rate(1.0, steps, {.examples_per_epoch = 100, .epochs = 3});

  EXPECT_DOUBLE_EQ(rate.At(99), 1.0);
  EXPECT_DOUBLE_EQ(rate.At(100), 0.1);
  EXPECT_NEAR(rate.At(200), 0.01, 1e-12);
}

TEST(LearningRateTest, FollowsTheCosineFromWarmUpToTheFinalShare) {
  const ScheduleSpec cosine = {
      .kind = ScheduleSpec::Kind::kCosine, .warmup_epochs = 1, .final_share = 0.1};
  const LearningRate rate(1.0, cosine, {.examples_per_epoch = 100, .epochs = 3});

  EXPECT_DOUBLE_EQ(rate.At(0), 0.0);
  EXPECT_DOUBLE_EQ(rate.At(50), 0.5);
  EXPECT_DOUBLE_EQ(rate.At(100), 1.0);
  EXPECT_DOUBLE_EQ(rate.At(200), 0.55);
  EXPECT_DOUBLE_EQ(rate.At(300), 0.1);
  EXPECT_DOUBLE_EQ(rate.At(900), 0.1);
}

}  // namespace
}  // namespace slipstream
