#include "server/aggregator/group_pulls.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>

namespace slipstream {
namespace {

class GroupPullsTest : public testing::Test {
 protected:
  static GroupPulls::Asked From(uint32_t worker, uint64_t min_version) {
    return {.identity = {.run = 1, .worker = WorkerId{worker}, .incarnation = Incarnation{1}},
            .min_version = Version{min_version}};
  }

  std::optional<Answer> Pull(uint32_t worker, uint64_t min_version) {
    return pulls_.Pull(From(worker, min_version), CallId{++calls_});
  }

  /// Gives this version to the pull in whose name to fetch; returns how many it answers.
  size_t Fetch(uint64_t version) {
    const std::optional<GroupPulls::Asked> asked = pulls_.Next();
    EXPECT_TRUE(asked.has_value());
    GroupPulls::Fetched fetched = {.header = {}, .weights = FloatBuffer::TryMake(1)};
    fetched.header.version = Version{version};
    return pulls_.OnFetched(*asked, fetched).size();
  }

  GroupPulls pulls_;
  uint64_t calls_ = 0;
};

TEST_F(GroupPullsTest, FirstWeightsAreNotThoseOfLongAgo) {
  EXPECT_FALSE(Pull(0, 0).has_value());
  EXPECT_EQ(Fetch(100), 1u);

  // Nobody has waited since, so version 100 may be of long ago.
  EXPECT_FALSE(Pull(1, 0).has_value());
  EXPECT_FALSE(Pull(2, 0).has_value()) << "it waits for the same fetch";

  EXPECT_EQ(Fetch(5000), 2u);
}

TEST_F(GroupPullsTest, FirstWeightsAreTheKeptOnesWhileOthersWaitForTheNext) {
  EXPECT_FALSE(Pull(0, 0).has_value());
  EXPECT_EQ(Fetch(7), 1u);
  EXPECT_FALSE(Pull(0, 8).has_value());

  const std::optional<Answer> first = Pull(1, 0);

  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->header->version, Version{7});
}

// The fetch under way may wait for an update that needs this very worker's gradient.
TEST_F(GroupPullsTest, AWorkerIsSentToTheShardForFirstWeightsThatWouldHaveToWait) {
  EXPECT_FALSE(Pull(0, 8).has_value());

  const std::optional<Answer> first = Pull(1, 0);

  ASSERT_TRUE(first.has_value());
  EXPECT_TRUE(absl::IsUnavailable(first->refusal));
}

}  // namespace
}  // namespace slipstream
