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
  while (!queue.batches().empty()) {
    batches.push_back(queue.batches().front().first);
    queue.Done();
  }

  EXPECT_EQ(batches, (std::vector<uint64_t>{10, 11, 40}));
  EXPECT_FALSE(queue.has_more(0));
}

TEST(UnitQueueTest, AsksForTheNextUnitOneBatchBeforeItIsNeeded) {
  UnitQueue queue;
  EXPECT_EQ(queue.wanted(), 1u);
  queue.Add({.id = 1, .first = 0, .batches = 4});

  EXPECT_EQ(queue.wanted(), 0u);
  queue.Done();
  EXPECT_EQ(queue.wanted(), 0u);
  queue.Done();
  EXPECT_EQ(queue.wanted(), 1u);
  queue.Add({.id = 2, .first = 4, .batches = 4});
  EXPECT_EQ(queue.wanted(), 0u);
}

TEST(UnitQueueTest, AsksInTimeAndForEnoughOnceItKnowsHowLongAnAnswerTakes) {
  constexpr uint64_t kSteps = 1000;
  for (const uint32_t depth : {1u, 3u}) {
    for (const uint64_t latency : {0, 1, 3, 7, 20}) {  // Of an answer, in steps.
      SCOPED_TRACE(testing::Message() << "depth " << depth << ", an answer takes " << latency);
      UnitQueue queue(depth);
      WorkUnit asked;
      uint64_t idle = 0;
      uint64_t comes_at = 0;  // 0: none was asked for.
      for (uint64_t step = 1; step <= kSteps; ++step) {
        if (comes_at == 0 && queue.wanted() > 0) {
          asked = {.id = asked.id + 1, .first = asked.first + asked.batches};
          asked.batches = queue.wanted();
          comes_at = step + latency;
        }
        if (comes_at == step) {
          queue.Add(asked);
          comes_at = 0;
        }
        queue.batches().empty() ? static_cast<void>(++idle) : queue.Done();
      }

      EXPECT_LE(idle, 6 * latency);
    }
  }
}

TEST(UnitQueueTest, TheLastBatchIsKnownAsSuchOnlyOnceNoUnitWillFollow) {
  UnitQueue queue;
  queue.Add({.id = 1, .first = 0, .batches = 2});
  queue.Done();
  EXPECT_TRUE(queue.has_more());

  queue.Close();

  EXPECT_FALSE(queue.has_more());
  EXPECT_TRUE(queue.has_more(0));
  EXPECT_EQ(queue.wanted(), 0u);
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
  EXPECT_EQ(queue.wanted(), 1u);
  queue.Add({.id = 2, .first = 40, .batches = 1});

  EXPECT_EQ(queue.batches(1), (BatchRanges{{11}}));
  EXPECT_EQ(queue.batches(2), (BatchRanges{{40}}));
  EXPECT_TRUE(queue.batches(3).empty());
  queue.Done();
  EXPECT_EQ(queue.batches(1), (BatchRanges{{40}}));
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
  EXPECT_TRUE(queue.batches().empty());
  EXPECT_EQ(queue.wanted(), 0u);
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
      ASSERT_EQ(queue.batches(), (BatchRanges{{1 + i}}));
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

  EXPECT_EQ(queue.batches(0), (BatchRanges{{0}}));
  EXPECT_FALSE(queue.has_more());
  EXPECT_EQ(queue.progress(), (std::vector<UnitProgress>{{1, 0}}));
}

TEST(UnitQueueTest, APushTakesAsManyBatchesAsItStandsForAcrossUnits) {
  UnitQueue queue(1, 4);
  queue.Add({.id = 1, .first = 10, .batches = 6});
  EXPECT_EQ(queue.wanted(), 1u);
  EXPECT_EQ(queue.batches(), (BatchRanges{{10, 4}}));
  queue.Done(4);
  EXPECT_EQ(queue.batches(), (BatchRanges{{14, 2}})) << "as many as are at hand";
  queue.Add({.id = 2, .first = 40, .batches = 3});
  EXPECT_EQ(queue.batches(), (BatchRanges{{14, 2}, {40, 2}}));

  queue.Done(4);

  EXPECT_EQ(queue.progress(), (std::vector<UnitProgress>{{1, 6}, {2, 2}}));
  EXPECT_EQ(queue.batches(), (BatchRanges{{42, 1}}));
}

TEST(UnitQueueTest, ThePushesAfterAChangeStandForSoManyBatches) {
  UnitQueue queue(1, 4);
  queue.Add({.id = 1, .first = 0, .batches = 8});
  queue.Done(4);
  EXPECT_EQ(queue.wanted(), 1u);

  queue.SetQuantum(1);

  EXPECT_EQ(queue.batches(), (BatchRanges{{4, 1}}));
  EXPECT_EQ(queue.wanted(), 0u) << "four pushes are at hand";
  queue.Done();
  queue.SetQuantum(2);
  EXPECT_EQ(queue.batches(), (BatchRanges{{5, 2}}));
}

TEST(UnitQueueTest, APushHasABoundedNumberOfRanges) {
  UnitQueue queue(100, 1000);
  for (uint64_t id = 1; id <= 80; ++id) queue.Add({.id = id, .first = 2 * id, .batches = 1});

  EXPECT_EQ(queue.batches().size(), kBatchRangesMax);
}

}  // namespace
}  // namespace slipstream
