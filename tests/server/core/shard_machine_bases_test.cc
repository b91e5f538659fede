#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/core/shard_machine.h"
#include "tests/support/shard_machine_driver.h"

// Tests of base versions: which versions are kept for gradients in flight, and how a gradient is
// refused if its base is gone.

namespace slipstream {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Two workers under async, with a compensation that uses base weights.
class BasesTest : public testing::Test {
 protected:
  BasesTest() : driver_(Options()) { driver_.Start(FoundingView(2)); }

  static ShardMachine::Options Options() {
    ShardMachine::Options options = TestOptions({.policy = PolicyKind::kAsync});
    options.optimizer.staleness_scaling = StalenessScaling::kDelayCompensated;
    return options;
  }

  /// Worker 1 exchanges; the answer is the version that its push makes.
  void Exchange(uint64_t sequence, uint64_t base) {
    ASSERT_EQ(driver_.Push(ExchangeOf(1, sequence, base)).reply.outcome, PushOutcome::kApplied);
    driver_.PublishAll();
  }

  ShardMachineDriver driver_;
};

TEST_F(BasesTest, AreKeptFromTheAnswerUntilTheGradient) {
  EXPECT_THAT(driver_.core().BasesKept(), IsEmpty());
  driver_.Pull(TrainingPullOf(0));
  driver_.Pull(TrainingPullOf(1));
  EXPECT_THAT(driver_.core().BasesKept(), ElementsAre(Version{0}));

  Exchange(1, 0);
  Exchange(2, 1);
  EXPECT_THAT(driver_.core().BasesKept(), ElementsAre(Version{0}, Version{2}));

  EXPECT_EQ(driver_.Push(PushOf(0, 1, 0)).reply.outcome, PushOutcome::kApplied);
  EXPECT_THAT(driver_.core().BasesKept(), ElementsAre(Version{2}));
}

TEST_F(BasesTest, GoWithTheirMember) {
  driver_.Pull(TrainingPullOf(0));
  driver_.Pull(TrainingPullOf(1));
  Exchange(1, 0);
  View without_0 = FoundingView(2);
  without_0.number = ViewNumber{Value(without_0.number) + 1};
  without_0.members.erase(without_0.members.begin());

  driver_.OnView(without_0);

  EXPECT_THAT(driver_.core().BasesKept(), ElementsAre(Version{1}));
}

TEST_F(BasesTest, AGradientWhoseBaseIsGoneIsTooStaleAndChangesNothing) {
  driver_.Pull(TrainingPullOf(1));
  Exchange(1, 0);
  const std::string before = Describe(driver_.core());

  // Version 0 was never served to worker 0.
  const PushDecision decision = driver_.Push(PushOf(0, 1, 0));

  EXPECT_EQ(decision.reply.outcome, PushOutcome::kTooStale);
  EXPECT_THAT(decision.reply.message, HasSubstr("base version 0"));
  EXPECT_FALSE(decision.took_effect);
  EXPECT_EQ(Describe(driver_.core()), before);
  EXPECT_EQ(driver_.core().outcomes().at(PushOutcome::kTooStale), 1u);
  EXPECT_EQ(driver_.core().guard_counts().rejected, 0u) << "there is no guard";
}

TEST_F(BasesTest, TheNewestVersionIsABaseWhoeverWasGivenIt) {
  driver_.Pull(TrainingPullOf(1));
  Exchange(1, 0);

  EXPECT_EQ(driver_.Push(PushOf(0, 1, 1)).reply.outcome, PushOutcome::kApplied);
}

TEST_F(BasesTest, WhoIsAnsweredAgainMayUseEitherAnswer) {
  driver_.Pull(TrainingPullOf(0));
  driver_.Pull(TrainingPullOf(1));
  Exchange(1, 0);
  driver_.Pull(TrainingPullOf(0));

  EXPECT_THAT(driver_.core().BasesKept(), ElementsAre(Version{0}, Version{1}));
  EXPECT_EQ(driver_.Push(PushOf(0, 1, 0)).reply.outcome, PushOutcome::kApplied);
  EXPECT_THAT(driver_.core().BasesKept(), ElementsAre(Version{1}));
}

TEST_F(BasesTest, AreTheFirstAndTheLastOnesThatASlotWasGiven) {
  driver_.Pull(TrainingPullOf(1));
  for (uint64_t version = 0; version < 5; ++version) {
    driver_.Pull(TrainingPullOf(0));  // Worker 0 pulls anew instead of pushing.
    Exchange(version + 1, version);
  }
  EXPECT_THAT(driver_.core().BasesKept(),
              ElementsAre(Version{0}, Version{3}, Version{4}, Version{5}));

  EXPECT_EQ(driver_.Push(PushOf(0, 1, 2)).reply.outcome, PushOutcome::kTooStale);
  EXPECT_TRUE(driver_.core().OnPushHeader(PushOf(0, 1, 3).header).is_of_member);
  EXPECT_THAT(driver_.core().BasesKept(), ElementsAre(Version{3}, Version{5}))
      << "a gradient of version 3 arrives";
}

}  // namespace
}  // namespace slipstream
