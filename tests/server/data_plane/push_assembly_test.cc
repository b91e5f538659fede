#include "server/data_plane/push_assembly.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "common/base/philox.h"
#include "common/kernels/copy_values.h"
#include "common/layout/tensor_layout.h"
#include "common/wire/chunk_wire.h"
#include "server/data_plane/push_receiver.h"
#include "server/data_plane/shard_engine.h"

namespace slipstream {
namespace {

/// Returns 1, 2, 3, …
std::vector<float> Ramp(size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 1.0f);
  return values;
}

/// Returns the values as gRPC hands them out, in two slices that are cut inside a value.
ReceivedValues Received(std::span<const float> values) {
  const auto* bytes = reinterpret_cast<const char*>(values.data());
  const size_t cut = std::min<size_t>(6, values.size_bytes());
  std::vector<grpc::Slice> slices;
  slices.emplace_back(bytes, cut);
  slices.emplace_back(bytes + cut, values.size_bytes() - cut);
  Segments segments;
  for (const grpc::Slice& slice : slices) {
    segments.emplace_back(reinterpret_cast<const std::byte*>(slice.begin()), slice.size());
  }
  return {std::move(slices), std::move(segments)};
}

PushAssembly NewAssembly(size_t count) {
  PushHeader header;
  header.count = count;
  return PushAssembly(header);
}

absl::Status Add(PushAssembly& assembly, const std::vector<float>& gradient, size_t begin,
                 size_t end) {
  return assembly.Add(begin, Received(std::span(gradient).subspan(begin, end - begin)));
}

std::vector<float> Collected(const PushPayload& payload) {
  std::vector<float> values(payload.bytes / sizeof(float));
  size_t begin = 0;
  for (const auto& piece : payload.pieces) {
    CopyValues(piece->segments(), std::span(values).subspan(begin, piece->count()));
    begin += piece->count();
  }
  return values;
}

TEST(PushAssemblyTest, KeepsTheLossForTheLogUnlessItIsNoNumber) {
  PushAssembly push = NewAssembly(4);

  push.NoteTrailer({.loss = std::numeric_limits<float>::quiet_NaN()});
  EXPECT_EQ(push.header().trailer.loss, std::nullopt);
  push.NoteTrailer({.loss = 0.5f});

  EXPECT_EQ(push.header().trailer.loss, 0.5f);
}

TEST(PushAssemblyTest, PutsChunksInOrderInWhateverOrderTheyCome) {
  const std::vector<float> gradient = Ramp(1000);
  std::vector<size_t> chunks(10);
  std::iota(chunks.begin(), chunks.end(), size_t{0});
  std::optional<uint64_t> checksum;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomStream random(seed, 0);
    for (size_t i = chunks.size(); i > 1; --i) std::swap(chunks[i - 1], chunks[random.Below(i)]);
    PushAssembly assembly = NewAssembly(gradient.size());
    for (const size_t chunk : chunks) {
      ASSERT_FALSE(assembly.is_complete());
      ASSERT_TRUE(Add(assembly, gradient, chunk * 100, chunk * 100 + 100).ok());
    }

    ASSERT_TRUE(assembly.is_complete());
    EXPECT_EQ(assembly.Facts().checksum, checksum.value_or(assembly.Facts().checksum));
    checksum = assembly.Facts().checksum;
    EXPECT_EQ(Collected(assembly.TakePayload()), gradient);
  }
}

TEST(PushAssemblyTest, TellsEqualChunksAtOtherPlacesApart) {
  const std::vector<float> gradient = {1, 2, 2, 1};
  PushAssembly straight = NewAssembly(4);
  ASSERT_TRUE(Add(straight, gradient, 0, 2).ok());
  ASSERT_TRUE(Add(straight, gradient, 2, 4).ok());
  PushAssembly swapped = NewAssembly(4);
  const std::vector<float> other = {2, 1, 1, 2};
  ASSERT_TRUE(Add(swapped, other, 0, 2).ok());
  ASSERT_TRUE(Add(swapped, other, 2, 4).ok());

  EXPECT_NE(straight.Facts().checksum, swapped.Facts().checksum);
}

TEST(PushAssemblyTest, RefusesValuesThatCameBefore) {
  const std::vector<float> gradient = Ramp(100);
  for (const auto& [begin, end] : {std::pair(0, 21), std::pair(39, 60), std::pair(20, 40),
                                   std::pair(10, 50), std::pair(25, 30)}) {
    SCOPED_TRACE(testing::Message() << begin << " to " << end);
    PushAssembly assembly = NewAssembly(100);
    ASSERT_TRUE(Add(assembly, gradient, 20, 40).ok());

    const absl::Status status = Add(assembly, gradient, begin, end);

    EXPECT_NE(status.message().find("came twice"), absl::string_view::npos) << status;
  }
}

TEST(PushAssemblyTest, RefusesValuesBeyondTheAnnouncedCount) {
  const std::vector<float> gradient = Ramp(100);
  PushAssembly assembly = NewAssembly(50);

  EXPECT_FALSE(Add(assembly, gradient, 40, 51).ok());
  EXPECT_FALSE(Add(assembly, gradient, 60, 70).ok());
  EXPECT_FALSE(assembly.Add(UINT64_MAX, Received(gradient)).ok());
}

TEST(PushAssemblyTest, NamesTheFirstGap) {
  const std::vector<float> gradient = Ramp(100);
  PushAssembly assembly = NewAssembly(100);
  EXPECT_EQ(assembly.Missing(), "values 0 to 99");
  ASSERT_TRUE(Add(assembly, gradient, 80, 100).ok());
  ASSERT_TRUE(Add(assembly, gradient, 0, 30).ok());

  EXPECT_EQ(assembly.Missing(), "values 30 to 79");
}

TEST(PushAssemblyTest, AwaitsTheTrailerWhereOneChunkAtTheBeginIsMissing) {
  const std::vector<float> gradient = Ramp(1000);
  PushHeader header;
  header.count = gradient.size();
  header.chunk_bytes = 600 * sizeof(float);
  PushAssembly of_two(header);
  EXPECT_FALSE(of_two.awaits_trailer()) << "nothing has come";
  ASSERT_TRUE(Add(of_two, gradient, 700, 1000).ok());
  EXPECT_FALSE(of_two.awaits_trailer()) << "more than a chunk is missing";
  ASSERT_TRUE(Add(of_two, gradient, 600, 700).ok());
  EXPECT_TRUE(of_two.awaits_trailer()) << "the chunks behind it are smaller";
  ASSERT_TRUE(Add(of_two, gradient, 0, 600).ok());
  EXPECT_FALSE(of_two.awaits_trailer()) << "all has come";

  PushAssembly of_four = NewAssembly(gradient.size());  // It does not announce its chunk size.
  ASSERT_TRUE(Add(of_four, gradient, 250, 500).ok());
  ASSERT_TRUE(Add(of_four, gradient, 750, 1000).ok());
  EXPECT_FALSE(of_four.awaits_trailer()) << "there is a gap";
  ASSERT_TRUE(Add(of_four, gradient, 500, 750).ok());
  EXPECT_TRUE(of_four.awaits_trailer());
  ASSERT_TRUE(Add(of_four, gradient, 0, 200).ok());
  EXPECT_FALSE(of_four.awaits_trailer()) << "that is not how a trailer comes";
}

TEST(PushAssemblyTest, RefusesTooManySmallChunks) {
  const std::vector<float> gradient = Ramp(1000);
  PushAssembly assembly = NewAssembly(1000);
  size_t taken = 0;
  while (taken < 499 && Add(assembly, gradient, 998 - 2 * taken, 1000 - 2 * taken).ok()) ++taken;

  EXPECT_LT(taken, 100u);
}

TEST(PushAssemblyTest, SeesAnInfinityInAnyChunk) {
  std::vector<float> gradient = Ramp(100);
  gradient[70] = std::numeric_limits<float>::infinity();
  PushAssembly assembly = NewAssembly(100);
  ASSERT_TRUE(Add(assembly, gradient, 50, 100).ok());
  ASSERT_TRUE(Add(assembly, gradient, 0, 50).ok());

  EXPECT_FALSE(assembly.Facts().is_finite);
}

}  // namespace

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
  EXPECT_TRUE(std::holds_alternative<PushFraming::NeedMore>(*first));

  const auto last = receiver_.OnMessage(Chunk(std::nullopt, 1, 500));

  ASSERT_TRUE(last.ok()) << last.status();
  const auto* refused = std::get_if<PushFraming::Refused>(&*last);
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
  EXPECT_TRUE(std::holds_alternative<PushFraming::NeedMore>(*taken));

  PushReceiver other(engine_);
  const auto outcome = other.OnMessage(encoded(1500));  // As fp32 it would take 2000 bytes more.
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_TRUE(std::holds_alternative<PushFraming::Refused>(*outcome));
}

TEST_F(PushReceiverTest, TakesATrailerWithABitForEachTensorOfTheLargestModel) {
  PushTrailer trailer;
  trailer.absent.Add(TensorLayout::kTensorsMax - 1);
  for (const uint64_t offset : {0, 1}) {
    PushReceiver receiver(engine_);
    const auto outcome = receiver.OnMessage(EncodePushChunk(
        HeaderOf(2), offset, {{&kValue, 1}, std::make_shared<int>()}, Encoding::kFp32, trailer));

    ASSERT_TRUE(outcome.ok()) << outcome.status();
    EXPECT_EQ(std::holds_alternative<PushFraming::NeedMore>(*outcome), offset == 0);
  }
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
    const auto* refused = std::get_if<PushFraming::Refused>(&*outcome);
    ASSERT_NE(refused, nullptr);
    EXPECT_EQ(refused->reply.message, "the message holds more than its values");
    EXPECT_TRUE(refused->ends_stream);
  }
}

}  // namespace

}  // namespace slipstream
