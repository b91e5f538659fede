#include "common/wire/chunk_wire.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/encoding.h"
#include "common/base/limits.h"
#include "common/kernels/copy_values.h"
#include "proto/shard.pb.h"

namespace slipstream {
namespace {

const Identity kIdentity{1, WorkerId{2}, Incarnation{3}};
const std::vector<float> kValues = {0.5f, -1, 1e-30f, 4};

LentValues Lent() { return {kValues, std::make_shared<int>(0)}; }

std::vector<float> Copied(const ReceivedValues& received) {
  std::vector<float> values(received.count());
  CopyValues(received.segments(), values);
  return values;
}

TEST(ChunkWireTest, EveryMessageSurvivesTheWayThere) {
  const PushHeader push{.identity = kIdentity, .sequence = Sequence{1}, .count = 4};
  const WeightsHeader weights{Version{6}, 4, RoundWork{RoundWork::Kind::kCompute, {8}}};
  const InitializeHeader initialize{kIdentity, 1, 2, 4};
  PushReply reply;
  reply.outcome = PushOutcome::kBuffered;
  reply.version = Version{2};

  PushTrailer trailer = {.loss = 2.5f, .clip = 0.25f};
  for (const size_t tensor : {0, 9, 99'999}) trailer.absent.Add(tensor);
  const auto push_chunk =
      DecodePushChunk(EncodePushChunk(push, 12, Lent(), Encoding::kFp32, trailer));
  const auto weights_chunk = DecodeWeightsChunk(EncodeWeightsChunk(weights, 13, Lent()));
  const auto init_chunk = DecodeInitializeChunk(EncodeInitializeChunk(initialize, 14, Lent()));
  const auto exchange = DecodeExchangeChunk(EncodeExchangeChunk(reply, weights, 15, Lent()));

  EXPECT_EQ(push_chunk.value().header, push);
  EXPECT_EQ(push_chunk->offset, 12u);
  EXPECT_EQ(push_chunk->trailer, trailer);
  EXPECT_EQ(Copied(push_chunk->values), kValues);
  EXPECT_EQ(weights_chunk.value().header, weights);
  EXPECT_EQ(weights_chunk->offset, 13u);
  EXPECT_EQ(Copied(weights_chunk->values), kValues);
  EXPECT_EQ(init_chunk.value().header, initialize);
  EXPECT_EQ(init_chunk->offset, 14u);
  EXPECT_EQ(Copied(init_chunk->values), kValues);
  EXPECT_EQ(exchange.value().push, reply);
  EXPECT_EQ(exchange->header, weights);
  EXPECT_EQ(exchange->offset, 15u);
  EXPECT_EQ(Copied(exchange->values), kValues);
}

/// Returns kValues as this encoding rounds them.
std::vector<float> Rounded(Encoding encoding) {
  // fp16 rounds 1e-30 to 0: it is less than a hundred-thousandth of the smallest positive fp16.
  return encoding == Encoding::kBf16 ? std::vector<float>{0.5f, -1, 0x1.44p-100f, 4}
                                     : std::vector<float>{0.5f, -1, 0, 4};
}

TEST(ChunkWireTest, EncodedValuesArriveRounded) {
  const WeightsHeader weights{Version{6}, 4, std::nullopt};
  for (const Encoding encoding : {Encoding::kBf16, Encoding::kFp16}) {
    SCOPED_TRACE(RowOf(encoding).name);
    const std::vector<float> rounded = Rounded(encoding);

    const auto push = DecodePushChunk(EncodePushChunk(std::nullopt, 12, Lent(), encoding));
    const auto pulled = DecodeWeightsChunk(EncodeWeightsChunk(weights, 13, Lent(), encoding));
    const auto exchange =
        DecodeExchangeChunk(EncodeExchangeChunk(std::nullopt, weights, 14, Lent(), encoding));

    EXPECT_EQ(Copied(push.value().values), rounded);
    EXPECT_EQ(push->offset, 12u);
    EXPECT_EQ(push->values.message_bytes(), 8u);
    EXPECT_EQ(Copied(pulled.value().values), rounded);
    EXPECT_EQ(pulled->header, weights);
    EXPECT_EQ(Copied(exchange.value().values), rounded);
    EXPECT_EQ(exchange->header, weights);
  }
}

TEST(ChunkWireTest, TheTrailerComesWithTheWeights) {
  const WeightsTrailer trailer = {.newest = Version{9}, .checksums = {1, uint64_t{1} << 63}};

  const auto with_trailer =
      DecodeWeightsChunk(EncodeWeightsChunk(std::nullopt, 4, Lent(), Encoding::kFp32, trailer));
  const auto plain = DecodeWeightsChunk(EncodeWeightsChunk(std::nullopt, 4, Lent()));

  EXPECT_EQ(with_trailer.value().trailer, trailer);
  EXPECT_EQ(Copied(with_trailer->values), kValues);
  EXPECT_EQ(plain.value().trailer, std::nullopt);
}

TEST(ChunkWireTest, AChunkOfBlocksBeginsWhereABlockDoes) {
  const auto push = DecodePushChunk(EncodePushChunk(std::nullopt, 2048, Lent(), Encoding::kInt8));
  const auto between = DecodePushChunk(EncodePushChunk(std::nullopt, 512, Lent(), Encoding::kInt8));

  ASSERT_TRUE(push.ok());
  EXPECT_EQ(push->values.count(), kValues.size());
  EXPECT_EQ(push->values.message_bytes(), 4 + kValues.size());
  EXPECT_EQ(between.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(between.status().message(), "offset: 512 is not where a block of 1024 values begins");
}

TEST(ChunkWireTest, EncodingsOfLessThanAByteTellHowManyValuesCame) {
  for (const Encoding encoding : {Encoding::kOneBit, Encoding::kTwoBit, Encoding::kTopK}) {
    std::vector<float> values(kChunkBytesMin / sizeof(float) + 3, -2.0f);
    // A whole block arrives with 16 values by topk; the others are 0.
    if (encoding == Encoding::kTopK) std::fill(values.begin() + 16, values.end() - 3, 0.0f);

    const auto push =
        DecodePushChunk(EncodePushChunk(std::nullopt, 0, {values, nullptr}, encoding));

    ASSERT_TRUE(push.ok()) << push.status();
    EXPECT_EQ(Copied(push->values), values);
  }
}

TEST(ChunkWireTest, TheLenderHasItsValuesBackOnceTheyAreEncoded) {
  const auto owner = std::make_shared<int>(0);

  const auto borrowed = EncodePushChunk(std::nullopt, 0, {kValues, owner});
  EXPECT_EQ(owner.use_count(), 2);
  const auto encoded = EncodePushChunk(std::nullopt, 0, {kValues, owner}, Encoding::kBf16);

  EXPECT_EQ(owner.use_count(), 2);  // Only `borrowed` still holds it.
}

TEST(ChunkWireTest, EncodedValuesDecodeHoweverTheMessageIsCut) {
  const grpc::ByteBuffer message = EncodePushChunk(std::nullopt, 0, Lent(), Encoding::kBf16);
  std::vector<grpc::Slice> whole;
  ASSERT_TRUE(message.Dump(&whole).ok());
  std::string bytes;
  for (const grpc::Slice& slice : whole) bytes.append(slice.begin(), slice.end());
  for (size_t piece = 1; piece <= bytes.size(); ++piece) {
    std::vector<grpc::Slice> slices;
    for (size_t at = 0; at < bytes.size(); at += piece)
      slices.emplace_back(bytes.substr(at, piece));

    auto chunk = DecodePushChunk(grpc::ByteBuffer(slices.data(), slices.size()));

    ASSERT_TRUE(chunk.ok()) << chunk.status();
    const ReceivedValues moved = std::move(chunk->values);  // A move keeps the values valid.
    EXPECT_EQ(Copied(moved), Rounded(Encoding::kBf16)) << piece;
  }
}

template <typename Message>
grpc::ByteBuffer Serialized(const Message& message) {
  const grpc::Slice slice(message.SerializeAsString());
  return {&slice, 1};
}

/// Returns the error for a message with this many bytes of values.
template <typename Message, typename Decode>
std::string Refusal(Decode decode, int encoding, size_t bytes) {
  Message message;
  message.set_encoding(static_cast<v1::Encoding>(encoding));
  message.set_values(std::string(bytes, '\0'));
  const auto decoded = decode(Serialized(message));
  EXPECT_EQ(decoded.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(decoded.status().message());
}

TEST(ChunkWireTest, AnUnknownEncodingIsRefused) {
  for (const int encoding : {63, 100, -1}) {
    const std::string refusal = "encoding: " + std::to_string(encoding) + " is not known here";

    EXPECT_EQ(Refusal<v1::PushChunk>(DecodePushChunk, encoding, 12), refusal);
    EXPECT_EQ(Refusal<v1::WeightsChunk>(DecodeWeightsChunk, encoding, 12), refusal);
    EXPECT_EQ(Refusal<v1::ExchangeReply>(DecodeExchangeChunk, encoding, 0), refusal);
  }
}

TEST(ChunkWireTest, PartsOfValuesAreRefused) {
  EXPECT_EQ(Refusal<v1::PushChunk>(DecodePushChunk, v1::FP32, 6),
            "values: 6 bytes are not whole fp32 values");
  EXPECT_EQ(Refusal<v1::PushChunk>(DecodePushChunk, v1::BF16, 5),
            "values: 5 bytes are not whole bf16 values");
  EXPECT_EQ(Refusal<v1::WeightsChunk>(DecodeWeightsChunk, v1::FP16, 1),
            "values: 1 bytes are not whole fp16 values");
  EXPECT_EQ(Refusal<v1::ExchangeReply>(DecodeExchangeChunk, v1::FP16, 7),
            "values: 7 bytes are not whole fp16 values");
  EXPECT_EQ(Refusal<v1::PushChunk>(DecodePushChunk, v1::INT8, 4),
            "values: 4 bytes are not whole int8 values");
  EXPECT_EQ(Refusal<v1::PushChunk>(DecodePushChunk, v1::INT8,
                                   EncodedBytes(Encoding::kInt8, kChunkBytesMax / 4 + 1)),
            "values: 4194305 are more than a message may bring");
  v1::InitializeRequest initialize;
  initialize.set_values("value");
  EXPECT_EQ(DecodeInitializeChunk(Serialized(initialize)).status().message(),
            "values: 5 bytes are not whole fp32 values");
}

TEST(ChunkWireTest, WhatIsNotThereStaysAbsent) {
  const auto push = DecodePushChunk(EncodePushChunk(std::nullopt, 5, Lent()));
  const auto exchange = DecodeExchangeChunk(EncodeExchangeChunk(std::nullopt, std::nullopt, 0, {}));

  EXPECT_EQ(push.value().header, std::nullopt);
  EXPECT_EQ(exchange.value().push, std::nullopt);
  EXPECT_EQ(exchange->header, std::nullopt);
  EXPECT_EQ(exchange->values.count(), 0u);
}

TEST(ChunkWireTest, NoMoreTensorsAreAbsentThanAModelCanHave) {
  v1::PushChunk wire;
  wire.set_absent(std::string(12'501, '\1'));

  EXPECT_EQ(DecodePushChunk(Serialized(wire)).status().message(),
            "absent: more tensors than a model can have");
}

TEST(ChunkWireTest, ABadHeaderIsNamed) {
  v1::PushChunk wire;
  wire.mutable_header()->set_sequence(1);  // There is no identity.
  const grpc::Slice slice(wire.SerializeAsString());

  const absl::Status status = DecodePushChunk(grpc::ByteBuffer(&slice, 1)).status();

  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "header.identity: missing");
}

}  // namespace
}  // namespace slipstream
