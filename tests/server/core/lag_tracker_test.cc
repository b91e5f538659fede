#include "server/core/lag_tracker.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "common/base/philox.h"

namespace slipstream {
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
