#include <gtest/gtest.h>

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "tests/support/shard_machine_driver.h"
#include "tests/support/specs.h"

// Tests of when a shard has its state saved.

namespace slipstream {
namespace {

using Policy = ConsistencySpec::Policy;

class ShardSavesTest : public testing::Test {
 protected:
  /// The versions that were saved, oldest first.
  static std::vector<uint64_t> SavedBy(const ShardMachineDriver& driver) {
    std::vector<uint64_t> versions;
    for (const ShardState& state : driver.saved())
      versions.push_back(Value(state.versions.decided()));
    return versions;
  }
};

using Versions = std::vector<uint64_t>;

struct Setting {
  std::string name;
  ConsistencySpec consistency;
};

std::ostream& operator<<(std::ostream& out, const Setting& setting) { return out << setting.name; }

/// A shard with one worker, so that each push makes a version under every policy.
class ShardSavesUnderPolicy : public ShardSavesTest, public testing::WithParamInterface<Setting> {
 protected:
  void SetUp() override { driver_.Start(FoundingView(1)); }

  /// Makes the next version and publishes it.
  void MakeVersion() {
    const uint64_t version = Value(driver_.core().decided());
    driver_.Push(PushOf(0, version + 1, version), 1);
    driver_.PublishAll();
    ASSERT_EQ(Value(driver_.core().decided()), version + 1);
  }

  bool is_in_step() const { return GetParam().consistency.traits().in_step; }
  Versions saved() const { return SavedBy(driver_); }

  ShardMachineDriver driver_{WithSaves(GetParam().consistency)};
};

TEST_P(ShardSavesUnderPolicy, AnOrderSavesOneVersion) {
  driver_.OnSaveOrder(OrderOf(1, is_in_step() ? 3 : 0));
  for (int i = 0; i < 5; ++i) MakeVersion();
  EXPECT_EQ(saved(), is_in_step() ? (Versions{0, 3}) : (Versions{0, 1}));
}

TEST_P(ShardSavesUnderPolicy, OnlyANewerOrderCounts) {
  driver_.OnSaveOrder(OrderOf(2, is_in_step() ? 1 : 0));
  MakeVersion();
  driver_.OnSaveOrder(OrderOf(2, is_in_step() ? 2 : 0));
  driver_.OnSaveOrder(OrderOf(1, is_in_step() ? 2 : 0));
  MakeVersion();
  EXPECT_EQ(saved(), (Versions{0, 1}));

  driver_.OnSaveOrder(OrderOf(3, is_in_step() ? 3 : 0));
  MakeVersion();
  EXPECT_EQ(saved(), is_in_step() ? (Versions{0, 1, 3}) : (Versions{0, 1, 2}));
}

TEST_P(ShardSavesUnderPolicy, TheLastVersionIsSavedOnceTheShardHasDrained) {
  MakeVersion();
  driver_.Push(PushOf(0, 2, 1), 1);
  driver_.OnPhase(Phase::kDraining, 2);
  EXPECT_EQ(saved(), (Versions{0}));

  driver_.PublishAll();
  driver_.OnPhase(Phase::kEvaluating, 2);
  driver_.OnView({.number = ViewNumber{2}, .members = {}});

  EXPECT_EQ(saved(), (Versions{0, 2}));
}

TEST_P(ShardSavesUnderPolicy, ALastVersionThatWasSavedIsNotSavedAgain) {
  driver_.OnSaveOrder(OrderOf(1, is_in_step() ? 1 : 0));
  MakeVersion();
  driver_.OnPhase(Phase::kDraining, 1);
  EXPECT_TRUE(driver_.core().is_drained());
  EXPECT_EQ(saved(), (Versions{0, 1}));
}

TEST_P(ShardSavesUnderPolicy, RepliesSayThatACheckpointWillHoldThePush) {
  ShardMachineDriver forgetful(TestOptions(GetParam().consistency));
  forgetful.Start(FoundingView(1));

  EXPECT_EQ(driver_.Push(PushOf(0, 1, 0)).reply.durability, Durability::kCheckpoint);
  EXPECT_EQ(forgetful.Push(PushOf(0, 1, 0)).reply.durability, Durability::kMemory);
}

TEST_P(ShardSavesUnderPolicy, AShardThatSavesNothingTakesNoOrder) {
  ShardMachineDriver forgetful(TestOptions(GetParam().consistency));
  forgetful.Start(FoundingView(1));
  forgetful.OnSaveOrder(OrderOf(1, is_in_step() ? 1 : 0));
  forgetful.Push(PushOf(0, 1, 0));
  forgetful.PublishAll();
  forgetful.OnPhase(Phase::kDraining, 1);
  EXPECT_TRUE(forgetful.saved().empty());
}

INSTANTIATE_TEST_SUITE_P(
    Policies, ShardSavesUnderPolicy,
    testing::Values(Setting{"hardsync", {Policy::kHardsync}}, Setting{"backup", {Policy::kBackup}},
                    Setting{"softsync", {Policy::kSoftsync}}, Setting{"async", {Policy::kAsync}},
                    Setting{"ssp", {Policy::kSsp}}, Setting{"hogwild", {Policy::kHogwild}}),
    [](const auto& tested) { return tested.param.name; });

TEST_F(ShardSavesTest, WeightsOfANewGrantAreSavedAgain) {
  ShardMachine core(WithSaves({Policy::kAsync}));
  core.SetPlan(TestPlan());
  core.OnView(FoundingView(1));
  core.OnPhase(Phase::kInitializing, Version{});
  EXPECT_TRUE(core.OnInitialized(1).saves);
  EXPECT_TRUE(core.OnInitialized(2).saves);
}

TEST_F(ShardSavesTest, WithoutWeightsThereIsNothingToSave) {
  ShardMachine core(WithSaves({Policy::kAsync}));
  core.SetPlan(TestPlan());
  EXPECT_FALSE(core.OnSaveOrder(OrderOf(1)).saves);
  EXPECT_TRUE(core.OnInitialized(1).saves);
}

TEST_F(ShardSavesTest, AVersionThatIsThereIsSavedAtOnce) {
  ShardMachineDriver driver(WithSaves({Policy::kAsync}));
  driver.Start(FoundingView(1));
  driver.Push(PushOf(0, 1, 0), 1);

  driver.OnSaveOrder(OrderOf(1));

  EXPECT_EQ(driver.core().published(), Version{0});
  EXPECT_EQ(SavedBy(driver), (Versions{0, 1}));
}

TEST_F(ShardSavesTest, AnOrderWaitsForTheRoundThatHasGradients) {
  ShardMachineDriver driver(WithSaves({Policy::kSoftsync}));
  driver.Start(FoundingView(2));
  driver.Push(PushOf(0, 1, 0), 1);
  driver.Push(PushOf(1, 1, 0), 1);
  driver.Push(PushOf(0, 2, 0), 1);

  driver.OnSaveOrder(OrderOf(1));
  EXPECT_EQ(SavedBy(driver), (Versions{0}));

  driver.Push(PushOf(1, 2, 0), 1);
  EXPECT_EQ(SavedBy(driver), (Versions{0, 2}));
}

TEST_F(ShardSavesTest, InStepAnOrderThatComesJustInTimeIsObeyedAtOnceAndALaterOneNever) {
  ShardMachineDriver driver(WithSaves({Policy::kHardsync}));
  driver.Start(FoundingView(1));
  driver.Push(PushOf(0, 1, 0), 1);
  driver.PublishAll();
  driver.OnSaveOrder(OrderOf(1, 1));
  EXPECT_EQ(SavedBy(driver), (Versions{0, 1}));
  driver.Push(PushOf(0, 2, 1), 1);
  driver.PublishAll();
  driver.Push(PushOf(0, 3, 2), 1);

  driver.OnSaveOrder(OrderOf(2, 2));
  driver.PublishAll();
  driver.Push(PushOf(0, 4, 3), 1);

  EXPECT_EQ(SavedBy(driver), (Versions{0, 1}));
}

TEST_F(ShardSavesTest, InStepTheVersionIsSavedThatAnExcuseDecides) {
  ShardMachineDriver driver(WithSaves({Policy::kHardsync}));
  driver.Start(FoundingView(2));
  driver.OnSaveOrder(OrderOf(1, 1));
  driver.Push(PushOf(0, 1, 0), 1);

  // This worker has come to version 1 on another shard, and so has nothing for this round.
  driver.Pull(TrainingPullOf(1, /*min_version=*/1));

  EXPECT_EQ(SavedBy(driver), (Versions{0, 1}));
}

TEST_F(ShardSavesTest, InStepTheVersionIsSavedThatASmallerViewDecides) {
  ShardMachineDriver driver(WithSaves({Policy::kHardsync}));
  driver.Start(FoundingView(2));
  driver.OnSaveOrder(OrderOf(1, 1));
  driver.Push(PushOf(0, 1, 0), 1);

  View smaller = FoundingView(1);
  smaller.number = ViewNumber{2};
  driver.OnView(smaller);

  EXPECT_EQ(SavedBy(driver), (Versions{0, 1}));
}

TEST_F(ShardSavesTest, OrdersBringTheOrderToSave) {
  ShardMachineDriver driver(WithSaves({Policy::kAsync}));
  driver.Start(FoundingView(1));
  driver.Push(PushOf(0, 1, 0), 1);
  driver.PublishAll();
  const ServerOrders orders = {
      .number = 1, .phase = Phase::kTraining, .view = FoundingView(1), .save = OrderOf(1)};

  EXPECT_TRUE(driver.core().OnOrders(orders).saves);
  EXPECT_FALSE(driver.core().OnOrders(orders).saves);
}

TEST_F(ShardSavesTest, TheShardThatHandsOutTheWorkSavesTheLastVersionWhenNoWorkIsLeft) {
  ShardPlan plan = TestPlan();
  plan.batches_total = 1;
  ShardMachineDriver driver(WithSaves({Policy::kHardsync}), plan);
  driver.Start(FoundingView(1));
  driver.Pull(TrainingPullOf(0));
  driver.Push(PushOf(0, 1, 0), 1);
  driver.PublishAll();
  EXPECT_EQ(SavedBy(driver), (Versions{0, 1}));

  driver.OnPhase(Phase::kDraining, 1);
  EXPECT_EQ(SavedBy(driver), (Versions{0, 1}));
}

}  // namespace
}  // namespace slipstream
