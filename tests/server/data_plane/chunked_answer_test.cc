#include "server/data_plane/chunked_answer.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "common/base/encoding.h"
#include "common/kernels/copy_values.h"
#include "common/rpc/transport_options.h"
#include "common/wire/chunk_wire.h"
#include "server/storage/buffer_pool.h"

namespace slipstream {
namespace {

constexpr size_t kValues = 10;
constexpr size_t kChunkBytes = 4 * sizeof(float);
constexpr size_t kLargeChunkBytes = size_t{1} << 20;

/// Returns an answer to an applied push with the weights 0, 1, 2 … as version 7.
Answer WholeAnswer(BufferPool& pool) {
  std::shared_ptr<FloatBuffer> weights = pool.Take();
  const size_t count = weights->values().size();
  for (size_t i = 0; i < count; ++i) weights->values()[i] = static_cast<float>(i);
  return {.push = PushReply{.outcome = PushOutcome::kApplied, .version = Version{7}},
          .header = WeightsHeader{.version = Version{7}, .count = count},
          .weights = std::move(weights)};
}

/// Returns for each message whether its write is held back (buffered).
std::vector<bool> HeldBack(ChunkedAnswer answer) {
  std::vector<bool> held_back;
  while (answer.Next()) held_back.push_back(answer.write_options().get_buffer_hint());
  return held_back;
}

std::vector<ExchangeChunk> AllOf(ChunkedAnswer answer) {
  std::vector<ExchangeChunk> chunks;
  while (const std::optional<grpc::ByteBuffer> bytes = answer.Next()) {
    absl::StatusOr<ExchangeChunk> chunk = DecodeExchangeChunk(*bytes);
    EXPECT_TRUE(chunk.ok()) << chunk.status();
    if (!chunk.ok()) break;
    chunks.push_back(*std::move(chunk));
  }
  return chunks;
}

class ChunkedAnswerTest : public testing::TestWithParam<Encoding> {
 protected:
  BufferPool pool_{kValues};
};

INSTANTIATE_TEST_SUITE_P(Encodings, ChunkedAnswerTest,
                         testing::Values(Encoding::kFp32, Encoding::kBf16, Encoding::kFp16));

// All encodings represent such small whole numbers exactly.
TEST_P(ChunkedAnswerTest, BringsOutcomeAndHeaderFirstAndEveryValueOnce) {
  const std::vector<ExchangeChunk> chunks = AllOf(
      ChunkedAnswer(ChunkedAnswer::Form::kExchange, WholeAnswer(pool_), kChunkBytes, GetParam()));

  ASSERT_EQ(chunks.size(), 3u);
  uint64_t position = 0;
  for (const ExchangeChunk& chunk : chunks) {
    const bool is_first = position == 0;
    EXPECT_EQ(chunk.push.has_value(), is_first);
    EXPECT_EQ(chunk.header.has_value(), is_first);
    EXPECT_EQ(chunk.offset, position);
    std::vector<float> values(chunk.values.count());
    CopyValues(chunk.values.segments(), values);
    for (const float value : values) EXPECT_EQ(value, static_cast<float>(position++));
  }
  EXPECT_EQ(position, kValues);
}

TEST_P(ChunkedAnswerTest, OfARefusalIsOneMessageWithoutWeights) {
  const Answer refusal = {.push = PushReply{.outcome = PushOutcome::kTooStale}};

  const std::vector<ExchangeChunk> chunks =
      AllOf(ChunkedAnswer(ChunkedAnswer::Form::kExchange, refusal, kChunkBytes, GetParam()));

  ASSERT_EQ(chunks.size(), 1u);
  EXPECT_EQ(chunks[0].push, refusal.push);
  EXPECT_FALSE(chunks[0].header.has_value());
  EXPECT_EQ(chunks[0].values.count(), 0u);
}

TEST_P(ChunkedAnswerTest, HoldsLargeBorrowedMessagesBackForTheNextAndNeverTheLast) {
  BufferPool pool(3 * kLargeChunkBytes / sizeof(float));
  const bool is_borrowed = GetParam() == Encoding::kFp32;

  EXPECT_EQ(HeldBack(ChunkedAnswer(ChunkedAnswer::Form::kExchange, WholeAnswer(pool),
                                   kLargeChunkBytes, GetParam())),
            (std::vector{is_borrowed, is_borrowed, false}));
  EXPECT_EQ(HeldBack(ChunkedAnswer(ChunkedAnswer::Form::kExchange, WholeAnswer(pool_), kChunkBytes,
                                   GetParam())),
            (std::vector{false, false, false}));
}

TEST(ChunkedAnswerWaitTest, AWriteEndsOnceWhatWasWrittenAheadAndItselfHaveMoved) {
  EXPECT_EQ(ChunkedAnswer::AwaitedBytesMax(kChunkBytes), kChunkBytes);
  EXPECT_EQ(ChunkedAnswer::AwaitedBytesMax(kLargeChunkBytes),
            kLargeChunkBytes + TransportOptions{}.write_ahead_bytes);
}

}  // namespace
}  // namespace slipstream
