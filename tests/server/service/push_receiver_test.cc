#include "server/service/push_receiver.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/wire/chunk_wire.h"

namespace slipstream {
namespace {

constexpr float kValue = 1;

PushHeader HeaderOf(uint64_t count) {
  PushHeader header;
  header.identity = {5, WorkerId{0}, Incarnation{1}};
  header.sequence = Sequence{1};
  header.examples = 1;
  header.count = count;
  return header;
}

/// Returns the message followed by an unknown field.
grpc::ByteBuffer WithUnknown(const grpc::ByteBuffer& chunk, size_t unknown_bytes) {
  std::vector<grpc::Slice> slices;
  EXPECT_TRUE(chunk.Dump(&slices).ok());
  std::string unknown = "\x9a\x06";  // Field 99, of type bytes.
  unknown += static_cast<char>(0x80 | (unknown_bytes & 0x7f));
  unknown += static_cast<char>(unknown_bytes >> 7);
  unknown.append(unknown_bytes, 'x');
  if (unknown_bytes > 0) slices.emplace_back(unknown);
  return {slices.data(), slices.size()};
}

/// Returns a chunk of one value, followed by an unknown field.
grpc::ByteBuffer Chunk(const std::optional<PushHeader>& header, uint64_t offset,
                       size_t unknown_bytes) {
  return WithUnknown(EncodePushChunk(header, offset, {{&kValue, 1}, std::make_shared<int>()}),
                     unknown_bytes);
}

/// Tests pushes to a shard that has no model yet, which answers RETRY_LATER.
class PushReceiverTest : public testing::Test {
 protected:
  ShardEngine engine_{{}, std::nullopt};
  PushReceiver receiver_{engine_};
};

TEST_F(PushReceiverTest, ReadsWhatItRefusesToTheEnd) {
  const auto first = receiver_.OnMessage(Chunk(HeaderOf(2), 0, 500));
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_TRUE(std::holds_alternative<PushReceiver::NeedMore>(*first));

  const auto last = receiver_.OnMessage(Chunk(std::nullopt, 1, 500));

  ASSERT_TRUE(last.ok()) << last.status();
  const auto* refused = std::get_if<PushReceiver::Refused>(&*last);
  ASSERT_NE(refused, nullptr);
  EXPECT_EQ(refused->reply.outcome, PushOutcome::kRetryLater);
  EXPECT_FALSE(refused->ends_stream);
}

TEST_F(PushReceiverTest, MeasuresAMessageByItsValuesAsTheyTravel) {
  const std::vector<float> values(1000, kValue);
  const auto encoded = [&values](size_t unknown_bytes) {
    return WithUnknown(EncodePushChunk(HeaderOf(2000), 0, {values, nullptr}, Encoding::kBf16),
                       unknown_bytes);
  };

  const auto taken = receiver_.OnMessage(encoded(500));
  ASSERT_TRUE(taken.ok()) << taken.status();
  EXPECT_TRUE(std::holds_alternative<PushReceiver::NeedMore>(*taken));

  PushReceiver other(engine_);
  const auto outcome = other.OnMessage(encoded(1500));  // As fp32 it would take 2000 bytes more.
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_TRUE(std::holds_alternative<PushReceiver::Refused>(*outcome));
}

TEST_F(PushReceiverTest, EndsAStreamWhoseMessagesHoldMoreThanAdmissionCounts) {
  for (const bool is_first : {true, false}) {
    SCOPED_TRACE(is_first);
    PushReceiver receiver(engine_);
    if (!is_first) {
      ASSERT_TRUE(receiver.OnMessage(Chunk(HeaderOf(2), 0, 0)).ok());
    }

    const auto outcome =
        receiver.OnMessage(is_first ? Chunk(HeaderOf(2), 0, 1100) : Chunk(std::nullopt, 1, 1100));

    ASSERT_TRUE(outcome.ok()) << outcome.status();
    const auto* refused = std::get_if<PushReceiver::Refused>(&*outcome);
    ASSERT_NE(refused, nullptr);
    EXPECT_EQ(refused->reply.message, "the message holds more than its values");
    EXPECT_TRUE(refused->ends_stream);
  }
}

}  // namespace
}  // namespace slipstream
