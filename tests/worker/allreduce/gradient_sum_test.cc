// Rounds of ranks that are threads of this process, over loopback.

#include "worker/allreduce/gradient_sum.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <limits>
#include <vector>

#include "tests/worker/allreduce/ranks.h"

namespace slipstream {
namespace {

using testing::Each;

constexpr size_t kValues = 1000;
constexpr GradientSum::Options kSmallBuckets = {.bucket_values = 128};

bool Never() { return false; }

/// Takes part in a round with a gradient that has the same value everywhere, and is finished in two
/// parts.
absl::StatusOr<GradientSum::Result> Contribute(GradientSum& sum, float value, uint32_t examples,
                                               const PushTrailer& trailer = {}) {
  const std::vector<float> gradient(kValues, value);
  GradientFeed& feed = sum.Begin({.gradient = gradient, .examples = examples});
  feed.OnGradientReady({500, kValues});
  feed.OnGradientReady({0, 500});
  feed.Seal(trailer);
  return sum.Finish();
}

TEST(GradientSumTest, WeighsGradientsByTheirExamples) {
  const auto results = RunRanks(3, [](Collective& collective) {
    GradientSum sum(collective, kValues, kSmallBuckets, Never);
    for (int round = 1; round <= 3; ++round) {
      const uint32_t examples = collective.rank() + 1;  // 1, 2 and 3 of the value 10, 20 and 30.
      const auto result = Contribute(sum, 10.0f * static_cast<float>(examples), examples);
      if (!result.ok()) return result.status();
      EXPECT_EQ(result->examples, 6u);
      EXPECT_FALSE(result->ends);
      EXPECT_THAT(sum.sum(), Each(10.0f + 40.0f + 90.0f)) << "round " << round;
    }
    return absl::OkStatus();
  });
  EXPECT_THAT(results, Each(absl::OkStatus()));
}

TEST(GradientSumTest, MultipliesByTheFactorOfTheTrailer) {
  const auto results = RunRanks(2, [](Collective& collective) {
    GradientSum sum(collective, kValues, {.bucket_values = 128, .waits_for_trailer = true}, Never);
    const float clip = collective.rank() == 0 ? 0.5f : 1.0f;
    const auto result = Contribute(sum, 8, 2, {.clip = clip});
    EXPECT_THAT(sum.sum(), Each(8.0f + 16.0f));
    return result.status();
  });
  EXPECT_THAT(results, Each(absl::OkStatus()));
}

TEST(GradientSumTest, LeavesOutAGradientAlsoIfPartsOfItHaveLeft) {
  const auto results = RunRanks(3, [](Collective& collective) {
    GradientSum sum(collective, kValues, kSmallBuckets, Never);
    if (collective.rank() != 1) {
      const auto result = Contribute(sum, 3, 4);
      EXPECT_EQ(result.ok() ? result->examples : 0, 8u);
      EXPECT_THAT(sum.sum(), Each(24.0f));
      return result.status();
    }
    std::vector<float> gradient(kValues, std::numeric_limits<float>::quiet_NaN());
    GradientFeed& feed = sum.Begin({.gradient = gradient, .examples = 4});
    feed.OnGradientReady({500, kValues});
    feed.Abort();
    const auto result = sum.Finish();
    EXPECT_THAT(sum.sum(), Each(24.0f)) << "it makes the same weights as the others";
    return result.status();
  });
  EXPECT_THAT(results, Each(absl::OkStatus()));
}

TEST(GradientSumTest, SaysThatNothingCountsIfAllAreLeftOut) {
  const auto results = RunRanks(2, [](Collective& collective) {
    GradientSum sum(collective, kValues, kSmallBuckets, Never);
    const std::vector<float> gradient(kValues, 1);
    sum.Begin({.gradient = gradient, .examples = 4}).Abort();
    const auto result = sum.Finish();
    EXPECT_EQ(result.ok() ? result->examples : 1, 0u);
    return result.status();
  });
  EXPECT_THAT(results, Each(absl::OkStatus()));
}

TEST(GradientSumTest, ARankWithoutMiniBatchTakesPart) {
  const auto results = RunRanks(3, [](Collective& collective) {
    GradientSum sum(collective, kValues, kSmallBuckets, Never);
    if (collective.rank() == 2) sum.Begin({});
    const auto result = collective.rank() == 2 ? sum.Finish() : Contribute(sum, 5, 1);
    EXPECT_EQ(result.ok() ? result->examples : 0, 2u);
    EXPECT_THAT(sum.sum(), Each(10.0f));
    return result.status();
  });
  EXPECT_THAT(results, Each(absl::OkStatus()));
}

TEST(GradientSumTest, AllHearInTheSameRoundThatOneWantsTheEnd) {
  const auto results = RunRanks(3, [](Collective& collective) {
    GradientSum sum(collective, kValues, kSmallBuckets, Never);
    const std::vector<float> gradient(kValues, 1);
    for (int round = 0; round < 3; ++round) {
      sum.Begin({.gradient = gradient,
                 .examples = 1,
                 .wants_end = round == 1 && collective.rank() == 1})
          .Seal({});
      const auto result = sum.Finish();
      if (!result.ok()) return result.status();
      EXPECT_EQ(result->ends, round == 1) << "round " << round;
    }
    return absl::OkStatus();
  });
  EXPECT_THAT(results, Each(absl::OkStatus()));
}

TEST(GradientSumTest, ARankThatDiesInARoundFailsItForAll) {
  const auto results = RunRanks(4, [](Collective& collective) {
    const std::vector<float> gradient(kValues, 1);
    GradientSum sum(collective, kValues, kSmallBuckets, Never);
    if (absl::Status first = Contribute(sum, 1, 1).status(); !first.ok()) return first;
    if (collective.rank() == 3) {
      sum.Begin({.gradient = gradient, .examples = 1}).OnGradientReady({900, kValues});
      return absl::OkStatus();
    }
    return Contribute(sum, 1, 1).status();
  });
  for (const uint32_t rank : {0, 1, 2}) {
    EXPECT_EQ(results[rank].code(), absl::StatusCode::kUnavailable) << results[rank];
  }
}

TEST(GradientSumTest, AnInterruptionEndsTheWaitForASilentRank) {
  std::atomic<bool> is_over = false;
  const auto results = RunRanks(2, [&](Collective& collective) {
    if (collective.rank() == 1) {
      is_over.wait(false);
      return absl::OkStatus();
    }
    GradientSum sum(collective, kValues, kSmallBuckets, [] { return true; });
    const absl::Status status = Contribute(sum, 1, 1).status();
    is_over = true;
    is_over.notify_all();
    return status;
  });
  EXPECT_EQ(results[0].code(), absl::StatusCode::kCancelled) << results[0];
}

TEST(GradientSumTest, ComparesNumbersBetweenRounds) {
  const auto results = RunRanks(2, [](Collective& collective) {
    GradientSum sum(collective, kValues, kSmallBuckets, Never);
    if (absl::Status first = Contribute(sum, 1, 1).status(); !first.ok()) return first;
    const auto same = sum.IsSame(7);
    EXPECT_TRUE(same.ok() && *same);
    const auto other = sum.IsSame(collective.rank());
    EXPECT_TRUE(other.ok() && !*other);
    return Contribute(sum, 1, 1).status();
  });
  EXPECT_THAT(results, Each(absl::OkStatus()));
}

}  // namespace
}  // namespace slipstream
