#include "worker/client/weights_arrival.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/wire/chunk_wire.h"

namespace slipstream {
namespace {

const std::vector<float> kValues = {1, 2, 3, 4, 5, 6};
const WeightsHeader kHeader{Version{3}, 6, std::nullopt};

/// Gives `arrival` the values [begin, end) as a chunk at `offset`.
absl::Status Take(WeightsArrival& arrival, const std::optional<WeightsHeader>& header,
                  uint64_t offset, size_t begin, size_t end) {
  const std::span<const float> values = std::span(kValues).subspan(begin, end - begin);
  const auto chunk =
      DecodeWeightsChunk(EncodeWeightsChunk(header, offset, {values, std::make_shared<int>(0)}));
  return arrival.Take(chunk->header, chunk->offset, chunk->values);
}

TEST(WeightsArrivalTest, PutsChunksWhereTheyBelong) {
  std::vector<float> target(6);
  WeightsArrival arrival(target);
  ASSERT_TRUE(Take(arrival, kHeader, 0, 0, 4).ok());
  EXPECT_FALSE(arrival.is_complete());

  ASSERT_TRUE(Take(arrival, std::nullopt, 4, 4, 6).ok());

  EXPECT_TRUE(arrival.is_complete());
  EXPECT_EQ(arrival.header(), kHeader);
  EXPECT_EQ(target, kValues);
}

TEST(WeightsArrivalTest, RefusesWhatDoesNotContinueTheWeights) {
  std::vector<float> target(6);
  const WeightsHeader longer{Version{3}, 7, std::nullopt};

  WeightsArrival no_header(target);
  EXPECT_EQ(Take(no_header, std::nullopt, 0, 0, 2).code(), absl::StatusCode::kInternal);
  WeightsArrival other_size(target);
  EXPECT_EQ(Take(other_size, longer, 0, 0, 2).code(), absl::StatusCode::kInternal);
  WeightsArrival gap(target);
  EXPECT_EQ(Take(gap, kHeader, 1, 0, 2).code(), absl::StatusCode::kInternal);
  WeightsArrival second_header(target);
  ASSERT_TRUE(Take(second_header, kHeader, 0, 0, 2).ok());
  EXPECT_EQ(Take(second_header, kHeader, 2, 2, 4).code(), absl::StatusCode::kInternal);
  WeightsArrival too_long(target);
  ASSERT_TRUE(Take(too_long, kHeader, 0, 0, 4).ok());
  EXPECT_EQ(Take(too_long, std::nullopt, 4, 0, 3).code(), absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace slipstream
