#include <gtest/gtest.h>

#include "tests/support/shard_machine_driver.h"

// Tests of when a push's update can be forecast before the push is complete. The driver checks at
// every push of every test that the update ordered is the one forecast.

namespace slipstream {
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
