#include "worker/data/batch_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

namespace slipstream {
namespace {

std::vector<uint32_t> Batch(BatchOrder& order, uint64_t index) {
  const std::span<const uint32_t> examples = order.Examples(index);
  return {examples.begin(), examples.end()};
}

std::vector<uint32_t> Epoch(BatchOrder& order, uint64_t epoch) {
  std::vector<uint32_t> all;
  for (uint64_t i = 0; i < order.batches_per_epoch(); ++i) {
    const std::vector<uint32_t> batch = Batch(order, epoch * order.batches_per_epoch() + i);
    all.insert(all.end(), batch.begin(), batch.end());
  }
  return all;
}

TEST(BatchOrderTest, GivesEveryExampleOnceInEveryEpoch) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937_64 random(seed);
    const size_t examples = 1 + random() % 300;
    const auto batch_size = static_cast<uint32_t>(1 + random() % 40);
    BatchOrder order(examples, batch_size, seed);

    for (const uint64_t epoch : {0, 1, 7}) {
      std::vector<uint32_t> all = Epoch(order, epoch);
      std::sort(all.begin(), all.end());
      ASSERT_EQ(all.size(), examples);
      for (uint32_t i = 0; i < examples; ++i) ASSERT_EQ(all[i], i);
    }
  }
}

TEST(BatchOrderTest, OnlyTheLastBatchOfAnEpochIsShorter) {
  BatchOrder order(10, 4, 1);

  EXPECT_EQ(order.batches_per_epoch(), 3u);
  EXPECT_EQ(order.Examples(0).size(), 4u);
  EXPECT_EQ(order.Examples(1).size(), 4u);
  EXPECT_EQ(order.Examples(2).size(), 2u);
  EXPECT_EQ(order.Examples(3).size(), 4u);
}

TEST(BatchOrderTest, ABatchLargerThanTheSetIsTheSet) {
  BatchOrder order(3, 100, 1);

  EXPECT_EQ(order.batches_per_epoch(), 1u);
  EXPECT_EQ(order.Examples(5).size(), 3u);
}

TEST(BatchOrderTest, DoesNotDependOnTheOrderOfQuestions) {
  BatchOrder forward(100, 7, 3);
  BatchOrder backward(100, 7, 3);
  std::vector<std::vector<uint32_t>> batches;
  for (uint64_t i = 0; i < 60; ++i) batches.push_back(Batch(forward, i));

  for (uint64_t i = 60; i-- > 0;) EXPECT_EQ(Batch(backward, i), batches[i]) << "batch " << i;
}

TEST(BatchOrderTest, DiffersBetweenEpochsAndBetweenSeeds) {
  BatchOrder order(1000, 10, 1);
  BatchOrder other_seed(1000, 10, 2);

  EXPECT_NE(Epoch(order, 0), Epoch(order, 1));
  EXPECT_NE(Epoch(order, 0), Epoch(other_seed, 0));
}

TEST(BatchOrderTest, IsTheSameForEver) {
  BatchOrder order(8, 8, 42);

  EXPECT_EQ(Batch(order, 0), (std::vector<uint32_t>{0, 5, 2, 1, 3, 7, 4, 6}));
  EXPECT_EQ(Batch(order, 1), (std::vector<uint32_t>{2, 7, 0, 3, 6, 4, 5, 1}));
}

TEST(BatchOrderTest, PutsEveryExampleAtEveryPlaceEquallyOften) {
  constexpr size_t kExamples = 6;
  constexpr int kEpochs = 6000;
  BatchOrder order(kExamples, kExamples, 5);
  std::vector<std::vector<int>> times(kExamples, std::vector<int>(kExamples));
  for (uint64_t epoch = 0; epoch < kEpochs; ++epoch) {
    const std::span<const uint32_t> examples = order.Examples(epoch);
    for (size_t place = 0; place < kExamples; ++place) ++times[place][examples[place]];
  }

  // Each count is binomial with mean 1000 and deviation 29. Five deviations do not happen by
  // chance.
  for (const std::vector<int>& place : times) {
    for (const int count : place) EXPECT_NEAR(count, kEpochs / int{kExamples}, 145);
  }
}

}  // namespace
}  // namespace slipstream
