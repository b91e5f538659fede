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

TEST(UnitQueueTest, DroppingEndsTheWorkAndKeepsTheProgress) {
  UnitQueue queue;
  queue.Add({.id = 1, .first = 0, .batches = 3});
  queue.Add({.id = 2, .first = 3, .batches = 3});
  queue.Done();

  queue.DropAllBut(0);

  EXPECT_FALSE(queue.has_more(0));
  EXPECT_FALSE(queue.batch().has_value());
  EXPECT_FALSE(queue.wants_unit());
  EXPECT_EQ(queue.progress(), (std::vector<UnitProgress>{{1, 1}}));
  queue.DropAllBut(0);
  EXPECT_EQ(queue.progress().size(), 1u);
}

TEST(UnitQueueTest, WhatIsUnderWayWhenTheRestIsDroppedIsDoneAsUsual) {
  for (uint64_t under_way = 0; under_way <= 5; ++under_way) {
    SCOPED_TRACE(testing::Message() << under_way << " under way");
    UnitQueue queue(5);
    queue.Add({.id = 1, .first = 0, .batches = 3});
    queue.Add({.id = 2, .first = 3, .batches = 3});
    queue.Done();

    queue.DropAllBut(under_way);

    for (uint64_t i = 0; i < under_way; ++i) {
      ASSERT_EQ(queue.batch(), 1 + i);
      queue.Done();
    }
    EXPECT_FALSE(queue.has_more(0));
    uint64_t done = 0;
    for (const UnitProgress& unit : queue.progress()) done += unit.batches_done;
    EXPECT_EQ(done, 1 + under_way);
  }
}

TEST(UnitQueueTest, AUnitThatWasOnItsWayWhenTheWorkEndedIsNotTaken) {
  UnitQueue queue;
  queue.Add({.id = 1, .first = 0, .batches = 1});
  queue.DropAllBut(1);

  queue.Add({.id = 2, .first = 1, .batches = 4});

  EXPECT_EQ(queue.batch(0), 0u);
  EXPECT_FALSE(queue.has_more());
  EXPECT_EQ(queue.progress(), (std::vector<UnitProgress>{{1, 0}}));
}

}  // namespace
}  // namespace slipstream
