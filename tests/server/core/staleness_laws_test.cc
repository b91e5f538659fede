#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <ostream>
#include <queue>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include "common/base/philox.h"
#include "tests/support/shard_machine_driver.h"
#include "tests/support/specs.h"

// Checks the closed forms of staleness on the core itself, in virtual time. Each of λ workers
// always has exactly one gradient in flight; its base version comes with the answer to the worker's
// previous push. Updates take no time: a version is published as soon as it is decided.

namespace slipstream {
namespace {

using Policy = ConsistencySpec::Policy;

constexpr uint64_t kSeed = 20'260;

enum class Times { kExponential, kUniform, kOneFourTimesSlower, kUniformOneFourTimesSlower };

struct Cluster {
  uint32_t workers = 1;
  ConsistencySpec consistency;
  Times times = Times::kExponential;
  uint64_t pushes = 10'000;

  uint32_t c() const { return consistency.round_size(workers); }
};

std::ostream& operator<<(std::ostream& out, const Cluster& cluster) {
  static constexpr const char* kTimes[] = {"exponential", "uniform", "one four times slower",
                                           "uniform, one four times slower"};
  return out << "workers " << cluster.workers << " n " << cluster.consistency.parameters["n"]
             << " c " << cluster.c() << " times " << kTimes[static_cast<int>(cluster.times)]
             << " seed " << kSeed;
}

/// Plays a cluster's pushes in order of virtual time, whose unit is the mean compute time E[X].
class Simulation {
 public:
  explicit Simulation(const Cluster& cluster)
      : cluster_(cluster),
        random_(kSeed, cluster.workers),
        driver_(TestOptions(cluster.consistency)),
        sequences_(cluster.workers),
        bases_(cluster.workers) {
    driver_.Start(FoundingView(cluster.workers));
    for (uint32_t worker = 0; worker < cluster.workers; ++worker) StartCompute(worker, Version{});
    for (uint64_t push = 0; push < cluster.pushes; ++push) Step();
  }

  const LagTracker& lag() const { return driver_.core().lag(); }
  double time() const { return now_; }
  double updates() const { return static_cast<double>(Value(driver_.core().decided())); }

  double OwnMean(uint32_t worker) const {
    const LagTracker::WorkerLag& own = lag().workers().at(WorkerId{worker});
    return static_cast<double>(own.sum) / static_cast<double>(own.pushes);
  }

  /// Returns R/r of the worker: the number of all workers' pushes for each of its own.
  double PushesPerOwn(uint32_t worker) const {
    const LagTracker::WorkerLag& own = lag().workers().at(WorkerId{worker});
    return static_cast<double>(lag().gradients()) / static_cast<double>(own.pushes);
  }

 private:
  using Arrival = std::tuple<double, uint32_t>;  // Time, worker.

  double ComputeTime(uint32_t worker) {
    const bool one_is_slow = cluster_.times == Times::kOneFourTimesSlower ||
                             cluster_.times == Times::kUniformOneFourTimesSlower;
    const double mean = one_is_slow && worker == 0 ? 4.0 : 1.0;
    const double unit = static_cast<double>(random_.Unit());
    const bool is_uniform =
        cluster_.times == Times::kUniform || cluster_.times == Times::kUniformOneFourTimesSlower;
    return mean * (is_uniform ? 0.8 + 0.4 * unit : -std::log(1.0 - unit));
  }

  void StartCompute(uint32_t worker, Version base) {
    bases_[worker] = base;
    arrivals_.emplace(now_ + ComputeTime(worker), worker);
  }

  void Step() {
    ASSERT_FALSE(arrivals_.empty()) << "every worker waits";
    const auto [time, worker] = arrivals_.top();
    arrivals_.pop();
    now_ = time;
    const PushDecision decision =
        driver_.Push(ExchangeOf(worker, ++sequences_[worker], Value(bases_[worker])));
    ASSERT_TRUE(decision.took_effect) << decision.reply.message;
    ASSERT_TRUE(decision.answer.has_value());
    if (const Serve* serve = std::get_if<Serve>(&*decision.answer)) {
      StartCompute(worker, serve->version);
    } else {
      waiting_.emplace(std::get<Park>(*decision.answer).call, worker);
    }
    driver_.PublishAll();
    for (auto it = waiting_.begin(); it != waiting_.end();) {
      const auto release = driver_.released().find(it->first);
      if (release == driver_.released().end()) {
        ++it;
        continue;
      }
      StartCompute(it->second, release->second.version);
      it = waiting_.erase(it);
    }
  }

  const Cluster cluster_;
  RandomStream random_;
  ShardMachineDriver driver_;
  double now_ = 0;
  std::vector<uint64_t> sequences_;
  std::vector<Version> bases_;
  std::priority_queue<Arrival, std::vector<Arrival>, std::greater<>> arrivals_;
  std::map<CallId, uint32_t> waiting_;
};

std::vector<Cluster> SoftsyncClusters(const std::vector<Times>& all_times) {
  std::vector<Cluster> clusters;
  for (const Times times : all_times) {
    for (const auto& [workers, n] : std::vector<std::pair<uint32_t, uint32_t>>{
             {4, 1}, {4, 2}, {4, 4}, {30, 1}, {30, 3}, {30, 30}}) {
      clusters.push_back({workers, Softsync(n), times});
    }
  }
  return clusters;
}

TEST(StalenessLawsTest, MeanStalenessOfSoftsyncIsConservedWhateverTheSpeeds) {
  for (const Cluster& cluster :
       SoftsyncClusters({Times::kExponential, Times::kUniform, Times::kOneFourTimesSlower})) {
    SCOPED_TRACE(testing::Message() << cluster);
    const Simulation simulation(cluster);

    const double law = (cluster.workers - 1.0) / cluster.c();
    EXPECT_NEAR(simulation.lag().mean(), law, 0.03 * law);
  }
}

TEST(StalenessLawsTest, AsyncIsSoftsyncWithRoundsOfOne) {
  for (const uint32_t workers : {1u, 4u, 30u}) {
    const Cluster cluster = {workers, {Policy::kAsync}, Times::kOneFourTimesSlower};
    SCOPED_TRACE(testing::Message() << cluster);
    const Simulation simulation(cluster);

    EXPECT_NEAR(simulation.lag().mean(), workers - 1.0, 0.03 * (workers - 1.0));
  }
}

TEST(StalenessLawsTest, AWorkersStalenessFollowsItsShareOfThePushes) {
  for (const Cluster& cluster :
       SoftsyncClusters({Times::kExponential, Times::kOneFourTimesSlower})) {
    SCOPED_TRACE(testing::Message() << cluster);
    const Simulation simulation(cluster);

    for (uint32_t worker = 0; worker < cluster.workers; ++worker) {
      const double law = (simulation.PushesPerOwn(worker) - 1.0) / cluster.c();
      EXPECT_NEAR(simulation.OwnMean(worker), law, 0.1 * law) << "worker " << worker;
    }
  }
}

TEST(StalenessLawsTest, HardsyncIsNeverStale) {
  for (const Times times : {Times::kExponential, Times::kUniform, Times::kOneFourTimesSlower}) {
    for (const uint32_t workers : {1u, 4u, 30u}) {
      const Cluster cluster = {workers, {Policy::kHardsync}, times, 3'000};
      SCOPED_TRACE(testing::Message() << cluster);
      const Simulation simulation(cluster);

      EXPECT_EQ(simulation.lag().max(), 0u);
      EXPECT_EQ(simulation.lag().gradients(), cluster.pushes);
      EXPECT_EQ(simulation.updates(), static_cast<double>(cluster.pushes / workers));
    }
  }
}

TEST(StalenessLawsTest, SoftsyncUpdatesComeAtTheRateOfAllWorkersTogether) {
  for (const Cluster& cluster : SoftsyncClusters({Times::kExponential, Times::kUniform})) {
    SCOPED_TRACE(testing::Message() << cluster);
    const Simulation simulation(cluster);

    const double law = static_cast<double>(cluster.c()) / cluster.workers;  // E[X] = 1.
    EXPECT_NEAR(simulation.time() / simulation.updates(), law, 0.05 * law);
  }
}

TEST(StalenessLawsTest, OneSlowWorkerAmongThirtyBreaksTheBoundOfTwiceN) {
  const Cluster cluster = {30, Softsync(30), Times::kUniformOneFourTimesSlower, 30'000};
  SCOPED_TRACE(testing::Message() << cluster);
  const Simulation simulation(cluster);

  const std::vector<uint64_t>& histogram = simulation.lag().histogram();
  uint64_t beyond = 0;
  for (size_t staleness = 2 * cluster.consistency.parameters["n"] + 1; staleness < histogram.size();
       ++staleness) {
    beyond += histogram[staleness];
  }
  // Bounds their share of all pushes: softsync alone does not bound staleness.
  EXPECT_NEAR(static_cast<double>(beyond) / static_cast<double>(cluster.pushes), 0.008, 0.001);
}

}  // namespace
}  // namespace slipstream
