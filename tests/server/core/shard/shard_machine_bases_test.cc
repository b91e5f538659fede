#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/core/shard/shard_machine.h"
#include "tests/support/shard_machine_driver.h"

// Tests of base versions: which versions are kept for gradients in flight, and how a gradient is
// refused if its base is gone. Further, when a push's update can be forecast before the push is
// complete. The driver checks at every push of every test that the update ordered is the one
// forecast.

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

namespace {

using Policy = ConsistencySpec::Policy;
using Scaling = OptimizerSpec::StalenessScaling;

TEST(ShardMachineForecastTest, EachAsyncGradientMakesAVersionAlone) {
  ShardMachineDriver driver(TestOptions({Policy::kAsync}));
  driver.Start(FoundingView(3));

  for (uint64_t step = 1; step <= 4; ++step) {
    driver.Push(PushOf(step % 3, (step + 2) / 3, step - 1), 1);
    driver.PublishAll();
  }

  EXPECT_EQ(driver.drafts(), 4u);
}

TEST(ShardMachineForecastTest, DoesNotKnowWhetherAGradientWillBeClipped) {
  ShardMachineDriver driver(TestOptions({Policy::kAsync}));
  driver.Start(FoundingView(1));
  ShardMachine::PushFacts clipped = PushOf(0, 1, 0);
  clipped.header.trailer.clip = 0.5f;

  driver.Push(clipped, 1);

  const double rate = driver.updates().back().update.learning_rate;
  EXPECT_DOUBLE_EQ(driver.weights().back(), -0.5 * rate);
  EXPECT_EQ(driver.drafts(), 0u);
}

TEST(ShardMachineForecastTest, DoesNotKnowWhichTensorsAGradientWillLack) {
  ShardMachineDriver driver(TestOptions({Policy::kAsync}));
  driver.Start(FoundingView(1));
  ShardMachine::PushFacts partial = PushOf(0, 1, 0);
  partial.header.trailer.absent.Add(2);

  driver.Push(partial, 1);

  EXPECT_EQ(driver.updates().back().update.absent, partial.header.trailer.absent);
  EXPECT_EQ(driver.drafts(), 0u);
}

TEST(ShardMachineForecastTest, KnowsHowAStaleGradientIsScaled) {
  ShardMachine::Options options = TestOptions({Policy::kAsync});
  options.optimizer.staleness_scaling = Scaling::kPerGradient;
  ShardMachineDriver driver(options);
  driver.Start(FoundingView(2));
  for (uint64_t sequence = 1; sequence <= 4; ++sequence) {
    driver.Push(PushOf(0, sequence, sequence - 1));
    driver.PublishAll();
  }

  const std::optional<Forecast> forecast = driver.ForecastOf(PushOf(1, 1, 0).header);

  ASSERT_TRUE(forecast.has_value());
  EXPECT_EQ(forecast->weight, 0.25f);
}

TEST(ShardMachineForecastTest, OneWorkerUnderHardsyncIsARound) {
  ShardMachineDriver driver(TestOptions({Policy::kHardsync}));
  driver.Start(FoundingView(1));

  driver.Push(PushOf(0, 1, 0), 1);

  EXPECT_EQ(driver.drafts(), 1u);
}

TEST(ShardMachineForecastTest, NothingIsForecastWhereOthersTakePart) {
  for (const ConsistencySpec& spec :
       {ConsistencySpec{Policy::kHardsync}, ConsistencySpec{Policy::kSoftsync}}) {
    ShardMachineDriver driver(TestOptions(spec));
    driver.Start(FoundingView(2));
    EXPECT_FALSE(driver.ForecastOf(PushOf(0, 1, 0).header).has_value());
    driver.Push(PushOf(0, 1, 0));
    EXPECT_FALSE(driver.ForecastOf(PushOf(1, 1, 0).header).has_value());
  }
}

TEST(ShardMachineForecastTest, NothingIsForecastOverAVersionThatIsBeingMade) {
  ShardMachineDriver driver(TestOptions({Policy::kAsync}));
  driver.Start(FoundingView(2));
  driver.Push(PushOf(0, 1, 0));

  EXPECT_FALSE(driver.ForecastOf(PushOf(1, 1, 0).header).has_value());
  driver.PublishAll();
  EXPECT_TRUE(driver.ForecastOf(PushOf(1, 1, 0).header).has_value());
}

TEST(ShardMachineForecastTest, NothingIsForecastOfARepetitionOrWhereTheMeanIsNeeded) {
  ShardMachine::Options options = TestOptions({Policy::kAsync});
  ShardMachineDriver driver(options);
  driver.Start(FoundingView(1));
  driver.Push(PushOf(0, 1, 0));
  driver.PublishAll();
  EXPECT_FALSE(driver.ForecastOf(PushOf(0, 1, 0).header).has_value());

  options.optimizer.staleness_scaling = Scaling::kMean;
  ShardMachineDriver scaled(options);
  scaled.Start(FoundingView(1));
  EXPECT_FALSE(scaled.ForecastOf(PushOf(0, 1, 0).header).has_value());
}

}  // namespace

}  // namespace slipstream
