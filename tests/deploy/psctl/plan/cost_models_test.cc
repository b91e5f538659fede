#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <queue>
#include <random>
#include <utility>
#include <vector>

#include "deploy/psctl/prediction/exchange_costs.h"
#include "deploy/psctl/prediction/queue_network.h"
#include "deploy/psctl/prediction/staleness_model.h"

namespace slipstream {
namespace {

TEST(ExchangeCostsTest, BytePsOptimumIsThePublishedOne) {
  // OSDI 2020: n = 8, M = B = 1; k = 0, 4, 8.
  EXPECT_DOUBLE_EQ(BytePsSeconds(1, 1, 8, 0), 1.75);
  EXPECT_NEAR(BytePsSeconds(1, 1, 8, 4), 1.273, 5e-4);
  EXPECT_DOUBLE_EQ(BytePsSeconds(1, 1, 8, 8), 1);
  EXPECT_EQ(BytePsSeconds(1, 1, 1, 3), 0);
  // Without helpers it is what a ring moves.
  EXPECT_DOUBLE_EQ(BytePsSeconds(1, 1, 8, 0), RingSeconds({.bytes_per_second = 1}, 1, 8));
}

TEST(ExchangeCostsTest, RingsAndServersTakeWhatThePagesSay) {
  // 1 GB, λ = 8, 10 Gbit/s: 1.4 s over the ring, 6.4 s with two servers, 1.6 s with eight.
  const LinkCosts fast = {.bytes_per_second = 10e9 / 8};
  EXPECT_NEAR(RingSeconds(fast, 1e9, 8), 1.4, 1e-9);
  EXPECT_NEAR(ServersSeconds(fast, 1e9, 8, 2), 6.4, 1e-9);
  EXPECT_NEAR(ServersSeconds(fast, 1e9, 8, 8), 1.6, 1e-9);
  // More servers than workers do not make a worker's link faster.
  EXPECT_NEAR(ServersSeconds(fast, 1e9, 8, 16), 1.6, 1e-9);
  // LeNet-5, λ = 64, α = 50 µs: 6.7 ms over the ring, 0.5 ms with 64 servers, 3.3 with eight.
  const LinkCosts small = {.latency = 50e-6, .bytes_per_second = 10e9 / 8};
  EXPECT_NEAR(RingSeconds(small, 246'824, 64), 6.7e-3, 5e-5);
  EXPECT_NEAR(ServersSeconds(small, 246'824, 64, 64), 0.5e-3, 5e-5);
  EXPECT_NEAR(ServersSeconds(small, 246'824, 64, 8), 3.3e-3, 5e-5);
  EXPECT_EQ(RingSeconds(small, 246'824, 1), 0);
}

TEST(ExchangeCostsTest, MessagesDecideWhereTheyAreSmall) {
  const LinkCosts link = {.bytes_per_second = 1e6, .message = 1e-3};
  EXPECT_DOUBLE_EQ(LinkSeconds(link, 10'000, 2), 10e-3);  // 10 ms of bytes, 2 ms of messages.
  EXPECT_DOUBLE_EQ(LinkSeconds(link, 1'000, 20), 20e-3);
}

TEST(ExchangeCostsTest, ATreeAddsAsMuchButNotOneAfterAnother) {
  EXPECT_EQ(SumOf(54, 0).depth, 53u);
  EXPECT_EQ(SumOf(54, 9).work, 53u);
  EXPECT_EQ(SumOf(54, 9).depth, 8u + 5u);
  EXPECT_EQ(SumOf(1, 9).depth, 0u);
}

TEST(QueueNetworkTest, MeanValueAnalysisGivesWhatOneCalculatesByHand) {
  // One station that serves in 1, and 1 of thinking. With one customer: a cycle of 2, so half a
  // customer is there. With two: 1 · (1 + 1/2) there, a cycle of 2.5, 0.8 a unit of time.
  const NetworkFlow one = SolveNetwork(1, 1, {{.demand = 1}});
  EXPECT_DOUBLE_EQ(one.cycle, 2);
  const NetworkFlow two = SolveNetwork(2, 1, {{.demand = 1}});
  EXPECT_DOUBLE_EQ(two.residence[0], 1.5);
  EXPECT_DOUBLE_EQ(two.cycle, 2.5);
  EXPECT_DOUBLE_EQ(two.cycle_min, 2);
  EXPECT_DOUBLE_EQ(two.cycle_max, 3);
  EXPECT_DOUBLE_EQ(two.busiest, 2);
  // Without thinking a station is always busy.
  EXPECT_DOUBLE_EQ(SolveNetwork(7, 0, {{.demand = 2}}).cycle, 14);
}

TEST(QueueNetworkTest, StationsWithAChannelForEachDelayOnly) {
  EXPECT_DOUBLE_EQ(SolveNetwork(2, 0, {{.demand = 3, .channels = 2}}).cycle, 3);
  // Four on two channels: each is served half of the time.
  EXPECT_NEAR(SolveNetwork(4, 0, {{.demand = 3, .channels = 2}}).cycle, 6, 0.15);
}

TEST(QueueNetworkTest, IsTheModelOfTheTreesBenchmark) {
  // tests/benchmarks/tree_overlap.py: 54 workers compute so long that 11.52 % is hidden; six nodes
  // then hide 63.3 %.
  const double compute = 6.351355655582441;
  EXPECT_NEAR(compute / SolveNetwork(54, compute, {{1}, {1}}).cycle, 0.1152, 1e-6);
  EXPECT_NEAR(compute / SolveNetwork(6, compute, {{1}, {1}}).cycle, 0.63259, 1e-5);
}

TEST(StalenessModelTest, TheMeanFollowsFromWhatIsUnderWay) {
  EXPECT_DOUBLE_EQ(MeanStaleness(30, 30), 29.0 / 30);
  EXPECT_DOUBLE_EQ(MeanStaleness(30, 1), 29);
  EXPECT_DOUBLE_EQ(MeanStaleness(2 * 4, 1), 7);
}

TEST(StalenessModelTest, TheFastestKOfExponentialLikeTimesAreInOrder) {
  EXPECT_EQ(FastestOf(5, 5, 0), 1);
  EXPECT_EQ(FastestOf(1, 1, 0.5), 1);
  // The mean over K is the mean of all.
  double sum = 0;
  for (uint32_t k = 1; k <= 6; ++k) sum += FastestOf(k, 6, 0.4);
  EXPECT_NEAR(sum / 6, 1, 1e-9);
  // Of two normal variables the later one has a mean of 1/√π deviations; little spread is normal.
  EXPECT_NEAR((FastestOf(2, 2, 0.01) - 1) / 0.01, 1 / std::sqrt(std::numbers::pi), 1e-2);
  // E[max] of 30 normal ones is 2.0428 deviations.
  EXPECT_NEAR((FastestOf(30, 30, 0.001) - 1) / 0.001, 2.0428, 5e-3);
}

/// A worker's next push, and the version that it computes from.
struct PushToCome {
  double time;
  uint32_t worker;
  uint64_t base;
  bool operator>(const PushToCome& other) const { return time > other.time; }
};

/// Plays λ workers that push when they have computed, and returns the mean of σ and the share above
/// `bound`.
std::pair<double, double> PlayedStaleness(uint32_t workers, uint32_t per_update, double spread,
                                          double bound, int pushes) {
  std::mt19937_64 random(1);
  const double variance = std::log1p(spread * spread);
  std::lognormal_distribution<double> time(-variance / 2, std::sqrt(variance));
  std::priority_queue<PushToCome, std::vector<PushToCome>, std::greater<>> coming;
  for (uint32_t worker = 0; worker < workers; ++worker) coming.push({time(random), worker, 0});
  uint64_t version = 0;
  uint32_t in_round = 0;
  double sum = 0;
  int beyond = 0;
  const int warm_up = pushes / 10;
  for (int push = -warm_up; push < pushes; ++push) {
    const PushToCome now = coming.top();
    coming.pop();
    const auto staleness = static_cast<double>(version - now.base);
    if (push >= 0) sum += staleness;
    if (push >= 0 && staleness > bound) ++beyond;
    if (++in_round == per_update) {
      in_round = 0;
      ++version;
    }
    coming.push({now.time + time(random), now.worker, version});
  }
  return {sum / pushes, static_cast<double>(beyond) / pushes};
}

TEST(StalenessModelTest, TheTailIsThatOfWorkersThatArePlayed) {
  struct Case {
    uint32_t workers, per_update;
    double spread, bound;
  };
  for (const auto& [workers, per_update, spread, bound] :
       {Case{30, 1, 0.3, 60}, Case{30, 1, 0.5, 60}, Case{30, 1, 0.3, 40}, Case{8, 2, 0.5, 8},
        Case{30, 30, 0.5, 2}, Case{30, 30, 0.5, 1}}) {
    SCOPED_TRACE(testing::Message() << workers << " " << per_update << " " << spread);
    const auto [mean, beyond] = PlayedStaleness(workers, per_update, spread, bound, 200'000);
    EXPECT_NEAR(mean, MeanStaleness(workers, per_update), 0.02 * mean);
    const double predicted = StalenessBeyond(workers - 1, per_update, spread, bound);
    EXPECT_NEAR(predicted, beyond, 0.1 * beyond);
  }
}

TEST(StalenessModelTest, SteadyWorkersKeepTheOrder) {
  EXPECT_EQ(StalenessBeyond(29, 1, 0, 29), 0);
  EXPECT_EQ(StalenessBeyond(29, 1, 0, 28), 1);
  EXPECT_EQ(StalenessBeyond(0, 1, 0.5, 0), 0);
  // Published: P(σ > 2n) < 1e-4 on a homogeneous cluster, n = 1 and 30.
  EXPECT_LT(StalenessBeyond(29, 30, 0.2, 2), 1e-4);
  EXPECT_LT(StalenessBeyond(29, 1, 0.2, 60), 1e-4);
}

}  // namespace
}  // namespace slipstream
