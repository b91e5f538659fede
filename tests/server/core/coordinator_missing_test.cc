#include <gtest/gtest.h>

#include <vector>

#include "tests/server/core/coordinator_fixture.h"

// Tests of the members that a run waits for, and of the time when it fails.

namespace slipstream {
namespace {

TEST_F(CoordinatorTest, NamesTheServersThatHaveNotComeAndWhenTheRunFails) {
  Use(Spec());
  SyncOne(0);
  now_ += absl::Seconds(8);
  SyncOne(0);

  const auto missing = coordinator().Missing(now_);

  ASSERT_TRUE(missing.has_value());
  EXPECT_EQ(missing->shards, std::vector<ShardId>{ShardId{1}});
  EXPECT_EQ(missing->fails_in, absl::Seconds(52));
  SyncOne(1);
  EXPECT_TRUE(coordinator().Missing(now_)->shards.empty());
}

TEST_F(CoordinatorTest, NamesTheWorkersThatHaveNotCome) {
  Use(Spec());
  Sync();
  Join();

  const auto missing = coordinator().Missing(now_);

  ASSERT_TRUE(missing.has_value());
  EXPECT_EQ(missing->workers, std::vector<WorkerId>{WorkerId{1}});
  EXPECT_EQ(missing->fails_in, absl::Seconds(60));
}

TEST_F(CoordinatorTest, MissesNobodyWhileTrainingGoesOn) {
  Train(Spec());

  EXPECT_FALSE(coordinator().Missing(now_).has_value());
  EXPECT_FALSE(coordinator().Missing(now_ + Coordinator::kServerSilenceMax).has_value());
}

TEST_F(CoordinatorTest, MissesAServerThatHasFallenSilent) {
  Train(Spec());
  now_ += absl::Seconds(10);
  SyncOne(0);

  const auto missing = coordinator().Missing(now_);

  ASSERT_TRUE(missing.has_value());
  EXPECT_EQ(missing->shards, std::vector<ShardId>{ShardId{1}});
  EXPECT_EQ(missing->fails_in, absl::Seconds(50));
}

TEST_F(CoordinatorTest, MissesAnyWorkerWhenAllAreGone) {
  Train(Spec());
  ASSERT_TRUE(coordinator().OnLeave(ada_, "no memory", now_).ok());
  ASSERT_TRUE(coordinator().OnLeave(bob_, "no memory", now_).ok());
  now_ += absl::Seconds(2);
  Sync();

  const auto missing = coordinator().Missing(now_);

  ASSERT_TRUE(missing.has_value());
  EXPECT_TRUE(missing->shards.empty() && missing->workers.empty());
  EXPECT_EQ(missing->fails_in, absl::Seconds(58));
}

}  // namespace
}  // namespace slipstream
