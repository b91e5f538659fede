// Sums of ranks that are threads of this process, over loopback.

#include "worker/allreduce/collective.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <vector>

#include "tests/worker/allreduce/ranks.h"

namespace slipstream {
namespace {

using testing::Each;

class CollectiveTest : public testing::TestWithParam<uint32_t> {};

INSTANTIATE_TEST_SUITE_P(Ranks, CollectiveTest, testing::Values(1, 2, 3, 4));

TEST_P(CollectiveTest, AddsUpArraysOfAnySize) {
  const uint32_t ranks = GetParam();
  const std::vector<absl::Status> results = RunRanks(ranks, [&](Collective& collective) {
    for (const size_t size : {size_t{1}, size_t{2}, size_t{7}, size_t{100'003}}) {
      std::vector<float> values(size);
      for (size_t i = 0; i < size; ++i) {
        values[i] = static_cast<float>(i % 100 * (collective.rank() + 1));
      }
      if (absl::Status status = collective.Sum(values); !status.ok()) return status;
      for (size_t i = 0; i < size; ++i) {
        const uint32_t all = ranks * (ranks + 1) / 2;
        EXPECT_EQ(values[i], static_cast<float>(i % 100 * all)) << "value " << i << " of " << size;
      }
    }
    return absl::OkStatus();
  });
  EXPECT_THAT(results, Each(absl::OkStatus()));
}

TEST_P(CollectiveTest, TheBitsAreTheSameOnAllRanks) {
  const uint32_t ranks = GetParam();
  std::vector<std::vector<float>> sums(ranks);
  const std::vector<absl::Status> results = RunRanks(ranks, [&](Collective& collective) {
    std::vector<float>& values = sums[collective.rank()];
    for (size_t i = 0; i < 1000; ++i) {
      values.push_back(0.1f * static_cast<float>(i) / static_cast<float>(collective.rank() + 3));
    }
    return collective.Sum(values);
  });
  EXPECT_THAT(results, Each(absl::OkStatus()));
  EXPECT_THAT(sums, Each(sums.front()));
}

TEST_P(CollectiveTest, NoticesThatRanksNameDifferentNumbers) {
  const uint32_t ranks = GetParam();
  std::atomic<uint32_t> noticed = 0;
  const std::vector<absl::Status> results = RunRanks(ranks, [&](Collective& collective) {
    const absl::StatusOr<bool> same = collective.IsSame(0xfedcba9876543210);
    if (!same.ok()) return same.status();
    EXPECT_TRUE(*same);
    // The highest bits differ, in the last rank alone.
    const bool is_last = collective.rank() + 1 == ranks;
    const absl::StatusOr<bool> other = collective.IsSame(is_last ? uint64_t{1} << 63 : 0);
    if (other.ok() && !*other) ++noticed;
    return other.status();
  });
  EXPECT_THAT(results, Each(absl::OkStatus()));
  EXPECT_EQ(noticed > 0, ranks > 1);
}

TEST(CollectiveEndTest, FailsOnAllOthersWhenOneRankIsGone) {
  const std::vector<absl::Status> results = RunRanks(4, [](Collective& collective) {
    std::vector<float> values(1000);
    absl::Status status = collective.Sum(values);
    if (!status.ok() || collective.rank() == 2) return status;  // Rank 2 closes its connections.
    status = collective.Sum(values);
    // Each passes the loss on, as neighbours of others than the lost rank do not see it.
    collective.Abort();
    return status;
  });
  for (const uint32_t rank : {0, 1, 3}) {
    EXPECT_EQ(results[rank].code(), absl::StatusCode::kUnavailable) << results[rank];
  }
  EXPECT_EQ(results[2], absl::OkStatus());
}

TEST(CollectiveEndTest, AnAbortEndsTheWaitForARankThatDoesNotCome) {
  Mutex mutex;
  CondVar changed;
  bool is_over = false;
  const std::vector<absl::Status> results = RunRanks(2, [&](Collective& collective) {
    if (collective.rank() == 1) {  // It stays connected, and is silent until the other gave up.
      MutexLock lock(mutex);
      while (!is_over) changed.Wait(mutex);
      return absl::OkStatus();
    }
    std::vector<float> values(10);
    std::thread aborts([&] { collective.Abort(); });
    const absl::Status status = collective.Sum(values);
    aborts.join();
    MutexLock lock(mutex);
    is_over = true;
    changed.NotifyAll();
    return status;
  });
  EXPECT_EQ(results[0].code(), absl::StatusCode::kUnavailable) << results[0];
}

TEST(CollectiveEndTest, NamesTheAddressThatItCannotUse) {
  LocalPlace place;
  place.Close();  // The other rank does not come.
  const std::unique_ptr<MeetingPlace> seen = place.Of(0);
  // A documentation address (RFC 5737), which no machine has.
  const auto collective =
      Collective::Connect({.rank = 0, .ranks = 2, .address = "192.0.2.1"}, *seen);
  EXPECT_EQ(collective.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(collective.status().message()), testing::HasSubstr("192.0.2.1"));
}

}  // namespace
}  // namespace slipstream
