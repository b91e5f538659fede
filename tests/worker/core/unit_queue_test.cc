#include "worker/core/unit_queue.h"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

namespace slipstream {
namespace {

TEST(UnitQueueTest, WorksThroughUnitsInOrder) {
  UnitQueue queue;
  queue.Add({.id = 1, .first = 10, .batches = 2});
  queue.Add({.id = 2, .first = 40, .batches = 1});
  queue.Close();

  std::vector<uint64_t> batches;
  while (queue.batch()) {
    batches.push_back(*queue.batch());
    queue.Done();
  }

  EXPECT_EQ(batches, (std::vector<uint64_t>{10, 11, 40}));
  EXPECT_FALSE(queue.has_more(0));
}

TEST(UnitQueueTest, AsksForTheNextUnitOneBatchBeforeItIsNeeded) {
  UnitQueue queue;
  EXPECT_TRUE(queue.wants_unit());
  queue.Add({.id = 1, .first = 0, .batches = 4});

  EXPECT_FALSE(queue.wants_unit());
  queue.Done();
  EXPECT_FALSE(queue.wants_unit());
  queue.Done();
  EXPECT_TRUE(queue.wants_unit());
  queue.Add({.id = 2, .first = 4, .batches = 4});
  EXPECT_FALSE(queue.wants_unit());
}

TEST(UnitQueueTest, TheLastBatchIsKnownAsSuchOnlyOnceNoUnitWillFollow) {
  UnitQueue queue;
  queue.Add({.id = 1, .first = 0, .batches = 2});
  queue.Done();
  EXPECT_TRUE(queue.has_more());

  queue.Close();

  EXPECT_FALSE(queue.has_more());
  EXPECT_TRUE(queue.has_more(0));
  EXPECT_FALSE(queue.wants_unit());
}

TEST(UnitQueueTest, TellsTheProgressOfEveryUnitAtHandAndOfThoseLatelyFinished) {
  UnitQueue queue;
  for (uint64_t id = 1; id <= 10; ++id) {
    queue.Add({.id = id, .first = 2 * id, .batches = 2});
    queue.Done();
    if (id < 10) queue.Done();
  }
  queue.Add({.id = 11, .first = 22, .batches = 2});

  const std::vector<UnitProgress> progress = queue.progress();

  ASSERT_EQ(progress.size(), UnitQueue::kFinishedUnitsTold + 2);
  EXPECT_EQ(progress.front(), (UnitProgress{2, 2}));
  EXPECT_EQ(progress[8], (UnitProgress{10, 1}));
  EXPECT_EQ(progress.back(), (UnitProgress{11, 0}));
}

TEST(UnitQueueTest, NamesBatchesBehindThoseUnderWayAcrossUnits) {
  UnitQueue queue(2);
  queue.Add({.id = 1, .first = 10, .batches = 2});
  EXPECT_TRUE(queue.wants_unit());
  queue.Add({.id = 2, .first = 40, .batches = 1});

  EXPECT_EQ(queue.batch(1), 11u);
  EXPECT_EQ(queue.batch(2), 40u);
  EXPECT_EQ(queue.batch(3), std::nullopt);
  queue.Done();
  EXPECT_EQ(queue.batch(1), 40u);
  EXPECT_TRUE(queue.has_more(5));
  queue.Close();
  EXPECT_TRUE(queue.has_more(1));
  EXPECT_FALSE(queue.has_more(2));
}

}  // namespace
}  // namespace slipstream
