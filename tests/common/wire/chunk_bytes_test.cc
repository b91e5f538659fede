#include "common/wire/chunk_bytes.h"

#include <gtest/gtest.h>

namespace slipstream {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

ShardMap Map(size_t bytes, uint32_t shards) {
  TensorLayout layout;
  EXPECT_TRUE(layout.Append("weights", {bytes / sizeof(float)}).ok());
  return *ShardMap::Cut(layout, shards);
}

TEST(ChunkBytesTest, WhatIsSetCounts) {
  EXPECT_EQ(ChunkBytes(4096, Map(64 * kMiB, 1)), 4096u);
  EXPECT_EQ(ChunkBytes(16 * kMiB, Map(kMiB, 1)), 16 * kMiB);
}

TEST(ChunkBytesTest, ElseTheLargestShardDecidesBetweenHalfAMiBAndTwo) {
  EXPECT_EQ(ChunkBytes(0, Map(64, 1)), kMiB / 2);
  EXPECT_EQ(ChunkBytes(0, Map(8 * kMiB, 1)), kMiB / 2);
  EXPECT_EQ(ChunkBytes(0, Map(12 * kMiB, 1)), kMiB / 4 * 3);
  EXPECT_EQ(ChunkBytes(0, Map(16 * kMiB, 1)), kMiB);
  EXPECT_EQ(ChunkBytes(0, Map(24 * kMiB, 1)), kMiB + kMiB / 2);
  EXPECT_EQ(ChunkBytes(0, Map(64 * kMiB, 2)), 2 * kMiB);
  EXPECT_EQ(ChunkBytes(0, Map(1024 * kMiB, 2)), 2 * kMiB);
}

TEST(ChunkBytesTest, IsCutAtMultiplesOf64) {
  for (size_t bytes = 8 * kMiB; bytes < 32 * kMiB; bytes += 333'332) {
    EXPECT_EQ(ChunkBytes(0, Map(bytes, 1)) % 64, 0u) << bytes;
  }
}

TEST(ChunkBytesTest, HoldsWholeBlocksOfTheEncoding) {
  EXPECT_EQ(ChunkBytes(4096 + 64, Map(kMiB, 1)), 4096u + 64);
  EXPECT_EQ(ChunkBytes(4096 + 64, Map(kMiB, 1), Encoding::kInt8), 4096u);
  for (size_t bytes = kMiB; bytes < 40 * kMiB; bytes += 1'000'000) {
    EXPECT_EQ(ChunkBytes(0, Map(bytes, 1), Encoding::kInt8) % 4096, 0u) << bytes;
  }
}

TEST(ChunkBytesTest, HasAnAnswerBeforeThereIsAModel) { EXPECT_EQ(ChunkBytes(0, {}), kMiB / 2); }

}  // namespace
}  // namespace slipstream
