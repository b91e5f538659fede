#include "worker/client/gradient_feed.h"

#include <gtest/gtest.h>

#include <thread>

namespace slipstream {
namespace {

TEST(GradientFeedTest, KnowsWhatIsFinalFromTheEnd) {
  GradientFeed feed(100);
  EXPECT_FALSE(feed.IsDecided(99));

  feed.OnReady({60, 100});

  EXPECT_TRUE(feed.IsDecided(60));
  EXPECT_FALSE(feed.IsDecided(59));
  EXPECT_TRUE(feed.AwaitFinal(70));
}

TEST(GradientFeedTest, ASealMakesAllOfItFinal) {
  GradientFeed feed(100);
  feed.OnReady({0, 100});
  EXPECT_FALSE(feed.is_over()) << "the step may still fail";
  EXPECT_EQ(feed.loss(), std::nullopt);
  std::thread lane([&feed] { EXPECT_TRUE(feed.AwaitSeal()); });

  feed.Seal(0.5f);
  lane.join();

  EXPECT_TRUE(feed.AwaitFinal(0));
  EXPECT_FALSE(feed.is_aborted());
  EXPECT_EQ(feed.loss(), 0.5f);
}

TEST(GradientFeedTest, AnAbortEndsEveryWait) {
  GradientFeed feed(100);
  feed.OnReady({60, 100});
  std::thread last([&feed] { EXPECT_FALSE(feed.AwaitSeal()); });
  std::thread middle([&feed] { EXPECT_FALSE(feed.AwaitFinal(10)); });

  feed.Abort();
  last.join();
  middle.join();

  EXPECT_FALSE(feed.AwaitFinal(60)) << "nothing more may leave";
  EXPECT_TRUE(feed.is_aborted());
}

TEST(GradientFeedDeathTest, RefusesRangesThatDoNotFollow) {
  GradientFeed feed(100);

  EXPECT_DEATH(feed.OnReady({40, 90}), "");
}

}  // namespace
}  // namespace slipstream
