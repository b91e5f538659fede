#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <numeric>
#include <ostream>
#include <queue>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include "common/base/philox.h"
#include "server/core/shard/lag_tracker.h"
#include "tests/support/shard_machine_driver.h"
#include "tests/support/specs.h"

// Tests of how lag is counted. Then the closed forms of staleness are checked on the core itself,
// in virtual time. Each of λ workers always has exactly one gradient in flight; its base version
// comes with the answer to the worker's previous push. Updates take no time: a version is published
// as soon as it is decided.

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

namespace {

std::vector<Version> Versions(const std::vector<uint64_t>& values) {
  std::vector<Version> versions;
  for (uint64_t value : values) versions.push_back(Version{value});
  return versions;
}

TEST(LagTrackerTest, IsZeroBeforeTheFirstGradient) {
  const LagTracker lag;

  EXPECT_EQ(lag.gradients(), 0u);
  EXPECT_EQ(lag.max(), 0u);
  EXPECT_EQ(lag.mean(), 0.0);
  EXPECT_EQ(lag.window_mean(), 0.0);
  EXPECT_TRUE(lag.histogram().empty());
  EXPECT_TRUE(lag.workers().empty());
  EXPECT_TRUE(lag.vector_clocks().empty());
}

TEST(LagTrackerTest, CountsEveryGradientOnceInTheHistogramAndForItsWorker) {
  LagTracker lag;
  lag.RecordGradient(WorkerId{0}, 0);
  lag.RecordGradient(WorkerId{1}, 3);
  lag.RecordGradient(WorkerId{0}, 3);

  EXPECT_EQ(lag.gradients(), 3u);
  EXPECT_EQ(lag.max(), 3u);
  EXPECT_DOUBLE_EQ(lag.mean(), 2.0);
  EXPECT_EQ(lag.histogram(), (std::vector<uint64_t>{1, 0, 0, 2}));
  EXPECT_EQ(lag.workers().at(WorkerId{0}).pushes, 2u);
  EXPECT_EQ(lag.workers().at(WorkerId{0}).sum, 3u);
  EXPECT_EQ(lag.workers().at(WorkerId{0}).last, 3u);
}

TEST(LagTrackerTest, TheLastBucketTakesEverythingAboveIt) {
  LagTracker lag;
  lag.RecordGradient(WorkerId{0}, LagTracker::kBuckets - 1);
  lag.RecordGradient(WorkerId{0}, LagTracker::kBuckets);
  lag.RecordGradient(WorkerId{0}, 1'000'000);

  ASSERT_EQ(lag.histogram().size(), LagTracker::kBuckets);
  EXPECT_EQ(lag.histogram().back(), 3u);
  EXPECT_EQ(lag.max(), 1'000'000u);
}

TEST(LagTrackerTest, MeasuresAnUpdateFromTheVersionItIsAppliedTo) {
  LagTracker lag;

  lag.RecordUpdate(Version{6}, Versions({5, 4, 2, 5}));  // ⟨σ⟩ = 5 − 4.

  ASSERT_EQ(lag.vector_clocks().size(), 1u);
  EXPECT_EQ(lag.vector_clocks().back().version, Version{6});
  EXPECT_EQ(lag.vector_clocks().back().bases, Versions({5, 4, 2, 5}));
  EXPECT_DOUBLE_EQ(lag.vector_clocks().back().mean_staleness, 1.0);
  EXPECT_DOUBLE_EQ(lag.window_mean(), 1.0);
}

TEST(LagTrackerTest, TheWindowMeanForgetsUpdatesOlderThanItsWindow) {
  LagTracker lag;
  uint64_t version = 100;
  for (size_t i = 0; i < LagTracker::kWindowUpdates; ++i) {
    ++version;
    lag.RecordUpdate(Version{version}, {Version{version - 11}});  // ⟨σ⟩ = 10.
  }
  EXPECT_DOUBLE_EQ(lag.window_mean(), 10.0);

  for (size_t i = 0; i < LagTracker::kWindowUpdates / 2; ++i) {
    ++version;
    lag.RecordUpdate(Version{version}, {Version{version - 1}});
  }
  EXPECT_DOUBLE_EQ(lag.window_mean(), 5.0);

  for (size_t i = 0; i < LagTracker::kWindowUpdates / 2; ++i) {
    ++version;
    lag.RecordUpdate(Version{version}, {Version{version - 1}});
  }
  EXPECT_DOUBLE_EQ(lag.window_mean(), 0.0);
}

struct NaiveUpdate {
  uint64_t version;
  std::vector<uint64_t> bases;
  double mean;
};

void ExpectEqual(const LagTracker& lag, const std::vector<std::vector<uint64_t>>& by_worker,
                 const std::vector<NaiveUpdate>& updates) {
  std::vector<uint64_t> all;
  for (size_t worker = 0; worker < by_worker.size(); ++worker) {
    const std::vector<uint64_t>& own = by_worker[worker];
    all.insert(all.end(), own.begin(), own.end());
    if (own.empty()) continue;
    const auto& seen = lag.workers().at(WorkerId{static_cast<uint32_t>(worker)});
    ASSERT_EQ(seen.pushes, own.size());
    ASSERT_EQ(seen.last, own.back());
    ASSERT_EQ(seen.sum, std::accumulate(own.begin(), own.end(), uint64_t{0}));
  }
  ASSERT_EQ(lag.gradients(), all.size());
  if (!all.empty()) {
    const double sum = std::accumulate(all.begin(), all.end(), 0.0);
    ASSERT_EQ(lag.max(), *std::max_element(all.begin(), all.end()));
    ASSERT_NEAR(lag.mean(), sum / static_cast<double>(all.size()), 1e-9);
    const uint64_t last_bucket = LagTracker::kBuckets - 1;
    ASSERT_EQ(lag.histogram().size(), std::min(lag.max(), last_bucket) + 1);
    for (uint64_t bucket = 0; bucket < lag.histogram().size(); ++bucket) {
      const auto expected = std::count_if(all.begin(), all.end(), [&](uint64_t staleness) {
        return std::min(staleness, last_bucket) == bucket;
      });
      ASSERT_EQ(lag.histogram()[bucket], static_cast<uint64_t>(expected)) << bucket;
    }
  }
  const size_t window = std::min(updates.size(), LagTracker::kWindowUpdates);
  double sum = 0;
  for (size_t i = updates.size() - window; i < updates.size(); ++i) sum += updates[i].mean;
  const double window_mean = window == 0 ? 0 : sum / static_cast<double>(window);
  ASSERT_NEAR(lag.window_mean(), window_mean, 1e-9);

  const size_t kept = std::min(updates.size(), LagTracker::kClocksKept);
  ASSERT_EQ(lag.vector_clocks().size(), kept);
  for (size_t i = 0; i < kept; ++i) {
    const NaiveUpdate& expected = updates[updates.size() - kept + i];
    ASSERT_EQ(lag.vector_clocks()[i].version, Version{expected.version});
    ASSERT_EQ(lag.vector_clocks()[i].bases, Versions(expected.bases));
    ASSERT_NEAR(lag.vector_clocks()[i].mean_staleness, expected.mean, 1e-9);
  }
}

TEST(LagTrackerPropertyTest, AgreesWithListsOfEverythingRecorded) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomStream random(seed, 2);
    LagTracker lag;
    std::vector<std::vector<uint64_t>> by_worker(4);
    std::vector<NaiveUpdate> updates;
    const uint64_t first = 2000;
    const uint32_t reach = seed % 2 == 0 ? 5 : 1500;

    for (uint64_t step = 0; step < 250; ++step) {
      NaiveUpdate update{.version = first + step + 1, .bases = {}, .mean = 0};
      const uint32_t gradients = 1 + random.Below(4);
      for (uint32_t i = 0; i < gradients; ++i) {
        const uint32_t worker = random.Below(4);
        const uint64_t staleness = random.Below(reach);
        lag.RecordGradient(WorkerId{worker}, staleness);
        by_worker[worker].push_back(staleness);
        update.bases.push_back(update.version - 1 - staleness);
        update.mean += static_cast<double>(staleness) / gradients;
      }
      lag.RecordUpdate(Version{update.version}, Versions(update.bases));
      updates.push_back(update);
      if (step % 25 == 0 || step == 249) {
        ASSERT_NO_FATAL_FAILURE(ExpectEqual(lag, by_worker, updates));
      }
    }
  }
}

}  // namespace

}  // namespace slipstream
