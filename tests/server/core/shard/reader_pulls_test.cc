#include "server/core/shard/reader_pulls.h"

#include <gtest/gtest.h>

#include <vector>

namespace slipstream {
namespace {

using Calls = std::vector<CallId>;

TEST(ReaderPullsTest, ReadersReadABoundedNumberOfVersions) {
  ReaderPulls pulls;
  pulls.Begin(CallId{1}, Version{1});
  pulls.Begin(CallId{2}, Version{2});

  EXPECT_TRUE(pulls.HasPlaceFor(Version{1}, /*pulls_max=*/3, /*versions_kept=*/1));
  EXPECT_FALSE(pulls.HasPlaceFor(Version{3}, /*pulls_max=*/3, /*versions_kept=*/1));
  EXPECT_FALSE(pulls.HasPlaceFor(Version{1}, /*pulls_max=*/2, /*versions_kept=*/1));

  pulls.End(CallId{1});
  EXPECT_TRUE(pulls.HasPlaceFor(Version{3}, /*pulls_max=*/3, /*versions_kept=*/1));
}

TEST(ReaderPullsTest, TheReadersOfTheOldestVersionLagOnce) {
  ReaderPulls pulls;
  pulls.Begin(CallId{1}, Version{1});
  pulls.Begin(CallId{2}, Version{2});
  pulls.Begin(CallId{3}, Version{1});
  pulls.Begin(CallId{4}, Version{3});
  EXPECT_EQ(pulls.NoteLagging(/*oldest_kept=*/Version{3}), Calls());

  EXPECT_EQ(pulls.NoteLagging(/*oldest_kept=*/Version{4}), (Calls{CallId{1}, CallId{3}}));
  EXPECT_EQ(pulls.NoteLagging(/*oldest_kept=*/Version{4}), Calls());
  EXPECT_TRUE(pulls.Contains(CallId{1}));
  pulls.CheckInvariants(Version{4}, /*pulls_max=*/4, /*versions_kept=*/1);
}

}  // namespace
}  // namespace slipstream
