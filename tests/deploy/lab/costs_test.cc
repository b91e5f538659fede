#include <gtest/gtest.h>

#include "common/model/model_spec.h"
#include "deploy/lab/compute_costs.h"
#include "deploy/lab/local_link.h"
#include "deploy/lab/measured_times.h"
#include "deploy/lab/update_costs.h"

namespace slipstream {
namespace {

constexpr absl::Duration kBudget = absl::Milliseconds(20);

RunSpec SmallRun() {
  RunSpec run;
  run.model = {.input = {1, 4, 4}, .layers = {FlattenLayer{}, DenseLayer{.units = 3}}};
  run.training.batch_size = 8;
  return run;
}

TEST(FitComputeCostsTest, FindsTheLineThroughPointsThatLieOnOne) {
  // 2 + 0.5 μ.
  const ComputeCosts costs = FitComputeCosts({{8, 6}, {16, 10}, {32, 18}});
  EXPECT_NEAR(costs.fixed, 2, 1e-9);
  EXPECT_NEAR(costs.per_example, 0.5, 1e-9);
}

TEST(FitComputeCostsTest, GoesThroughTheOriginWhereALineWouldBeginBelow) {
  const ComputeCosts costs = FitComputeCosts({{1, 1}, {3, 5}});
  EXPECT_EQ(costs.fixed, 0);
  EXPECT_DOUBLE_EQ(costs.per_example, 1.6);  // (1·1 + 3·5) / (1 + 9).
  EXPECT_DOUBLE_EQ(FitComputeCosts({{4, 2}}).per_example, 0.5);
}

TEST(MeasuredTimesTest, QuantilesAreValuesOfTheList) {
  EXPECT_EQ(Median({3, 1, 2}), 2);
  EXPECT_EQ(Quantile({5, 4, 3, 2, 1}, 1), 5);
  EXPECT_EQ(Quantile({5, 4, 3, 2, 1}, 0), 1);
}

TEST(MeasuredTimesTest, CallsOnceMoreThanItCounts) {
  int calls = 0;
  const auto times =
      TimesOf([&] { ++calls; }, MeasuringClock::kThread, absl::ZeroDuration(), 3, 10);
  EXPECT_EQ(times.size(), 3u);
  EXPECT_EQ(calls, 4);
}

TEST(MeasureComputeTest, MeasuresTheBatchSizesOfARun) {
  const auto costs = MeasureCompute(SmallRun(), kBudget);
  ASSERT_TRUE(costs.ok()) << costs.status();
  ASSERT_EQ(costs->points.size(), 3u);
  EXPECT_EQ(costs->points[0].batch_size, 2u);
  EXPECT_EQ(costs->points[2].batch_size, 8u);
  EXPECT_GT(costs->fixed + 8 * costs->per_example, 0);
  EXPECT_GT(costs->processor_share, 0);

  RunSpec of_targets = SmallRun();
  of_targets.model.loss = ModelSpec::Loss::kMse;
  EXPECT_TRUE(MeasureCompute(of_targets, kBudget).ok());
}

TEST(MeasureComputeTest, NamesTheLayerOfANetThatDoesNotFit) {
  RunSpec run = SmallRun();
  run.model.layers = {DenseLayer{.units = 3}};
  const auto costs = MeasureCompute(run, kBudget);
  EXPECT_EQ(costs.status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(MeasureUpdatesTest, EveryRuleCanBeMeasured) {
  for (const RuleRow& row : kRuleRows) {
    RunSpec run = SmallRun();
    run.optimizer.kind = row.kind;
    const UpdateCosts costs = MeasureUpdates(run, 1000, kBudget);
    EXPECT_GT(costs.rule, 0) << row.name;
    EXPECT_GT(costs.fold, 0) << row.name;
  }
}

TEST(LocalLinkTest, MeasuresBothWays) {
  for (const auto& link : {MeasureSharedMemory(1 << 20, kBudget), MeasureLoopback(kBudget)}) {
    ASSERT_TRUE(link.ok()) << link.status();
    EXPECT_GT(link->latency, 0);
    EXPECT_GT(link->message, 0);
    EXPECT_GT(link->bytes_per_second, 1e6);
  }
}

}  // namespace
}  // namespace slipstream
