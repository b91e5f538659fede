#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <string>

#include "tests/server/core/shard/random_shard.h"
#include "tests/support/specs.h"

// Random histories of a shard, under each policy, in which its properties hold after each event.

namespace slipstream {
namespace {

using Action = StalenessGuardSpec::Action;
using Policy = ConsistencySpec::Policy;
using Scaling = StalenessScaling;

constexpr int kSteps = 300;

ConsistencySpec Guarded(Action action) {
  ConsistencySpec spec = Softsync(2);
  spec.max_staleness = {action, 2};
  return spec;
}

class ShardProperties : public testing::TestWithParam<ShardSetting> {
 protected:
  /// Plays a history. Returns false if a property did not hold.
  bool Play(uint64_t seed) {
    SCOPED_TRACE("seed " + std::to_string(seed) + "; alone: SHARD_SEED=" + std::to_string(seed) +
                 " bazel run //tests/server/core -- --gtest_filter='*ShardProperties*/" +
                 GetParam().name + "'");
    RandomShard shard(GetParam(), seed, seen_);
    for (int step = 0; step < kSteps && !HasFailure(); ++step) {
      SCOPED_TRACE("step " + std::to_string(step));
      shard.Step();
    }
    if (!HasFailure()) shard.End();
    return !HasFailure();
  }

  ShardsSeen seen_;
};

TEST_P(ShardProperties, HoldAfterEachEventOfARandomHistory) {
  if (const char* const seed = std::getenv("SHARD_SEED")) {
    Play(std::strtoull(seed, nullptr, 10));
    return;
  }
  const uint64_t seeds = GetParam().has_naive_rounds() ? 120 : 60;
  for (uint64_t seed = 0; seed < seeds; ++seed) {
    if (!Play(seed)) return;
  }

  EXPECT_GT(seen_.served, 500u);
  EXPECT_GT(seen_.waited, 100u);
  if (GetParam().awaits_readers) return;
  EXPECT_GT(seen_.through_bytes, 500u);
  EXPECT_GT(seen_.saves, 100u);
  EXPECT_GT(seen_.returns, 100u);
  if (GetParam().publishes) {
    EXPECT_GT(seen_.refused, 100u);
    EXPECT_GT(seen_.lagged, 100u);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Policies, ShardProperties,
    testing::Values(
        ShardSetting{.name = "hardsync", .consistency = {Policy::kHardsync}},
        ShardSetting{.name = "softsync1", .consistency = {Policy::kSoftsync}},
        ShardSetting{.name = "softsync2", .consistency = Softsync(2)},
        ShardSetting{.name = "async", .consistency = {Policy::kAsync}},
        ShardSetting{.name = "publishes", .consistency = {Policy::kAsync}, .publishes = true},
        ShardSetting{.name = "awaits_readers",
                     .consistency = {Policy::kAsync},
                     .publishes = true,
                     .awaits_readers = true},
        ShardSetting{.name = "backup", .consistency = {Policy::kBackup}},
        ShardSetting{.name = "ssp", .consistency = {Policy::kSsp}},
        ShardSetting{.name = "blocks", .consistency = Guarded(Action::kBlock)},
        ShardSetting{.name = "rejects", .consistency = Guarded(Action::kReject)},
        ShardSetting{.name = "mean", .consistency = Softsync(2), .scaling = Scaling::kMean},
        ShardSetting{.name = "compensated",
                     .consistency = Softsync(2),
                     .scaling = Scaling::kDelayCompensated}),
    [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace slipstream
