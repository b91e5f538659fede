#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "tests/server/data_plane/shard_service_fixture.h"

// Tests of exchanges through the real service: how and when a push is answered, and values that
// travel as 16 bits. Their expected roundings are worked out by hand: between 1 and 2, bf16 has
// steps of 1/128, and fp16 has steps of 1/1024.

namespace slipstream {
namespace {

TEST_F(ShardServiceTest, HardsyncExchangeWaitsForTheRoundAndCarriesTheNextWork) {
  Start(kHardsync, 2);
  const auto exchange = [this](uint32_t worker) {
    grpc::ClientContext context;
    SetDeadline(context);
    auto stream = stub_->Exchange(&context);
    v1::PushChunk chunk;
    *chunk.mutable_header() = Header(worker, 1, 0);
    chunk.mutable_header()->set_pull(true);
    chunk.set_values(Bytes(std::vector<float>(kValues, worker == 0 ? 1.0f : 3.0f)));
    EXPECT_TRUE(stream->Write(chunk));
    v1::ExchangeReply first;
    std::string bytes;
    for (v1::ExchangeReply reply; bytes.size() < kValues * sizeof(float) && stream->Read(&reply);) {
      if (reply.has_push()) first = reply;
      bytes += reply.values();
    }
    stream->WritesDone();
    EXPECT_TRUE(stream->Finish().ok());
    EXPECT_EQ(first.push().outcome(), v1::APPLIED);
    EXPECT_EQ(first.header().version(), 1u);
    EXPECT_EQ(first.header().work().kind(), v1::RoundWork::COMPUTE);
    EXPECT_EQ(Floats(bytes), std::vector<float>(kValues, -2.0f));
  };

  std::thread other([&exchange] { exchange(1); });
  exchange(0);
  other.join();
}

TEST_F(ShardServiceTest, DoesNotSendAVersionThatTheWorkerHolds) {
  Start({ConsistencySpec::Policy::kSoftsync}, 2);
  grpc::ClientContext context;
  SetDeadline(context);
  auto stream = stub_->Exchange(&context);
  const auto exchange = [&](uint64_t sequence, bool holds_base) {
    v1::PushChunk chunk;
    *chunk.mutable_header() = Header(0, sequence, 0);
    chunk.mutable_header()->set_pull(true);
    chunk.mutable_header()->set_holds_base(holds_base);
    chunk.mutable_header()->set_chunk_bytes(4096);
    chunk.set_values(Bytes(std::vector<float>(kValues, 1.0f)));
    v1::ExchangeReply reply;
    EXPECT_TRUE(stream->Write(chunk) && stream->Read(&reply));
    return reply;
  };

  // The first gradient of a round does not make a version.
  const v1::ExchangeReply buffered = exchange(1, true);
  EXPECT_EQ(buffered.push().outcome(), v1::BUFFERED);
  EXPECT_TRUE(buffered.header().unchanged());
  EXPECT_EQ(buffered.header().version(), 0u);
  EXPECT_EQ(buffered.header().count(), kValues);
  EXPECT_EQ(buffered.values(), "");

  const v1::ExchangeReply applied = exchange(2, true);
  EXPECT_EQ(applied.push().outcome(), v1::APPLIED);
  EXPECT_FALSE(applied.header().unchanged());
  EXPECT_EQ(applied.header().version(), 1u);
  EXPECT_EQ(applied.values().size(), kValues * sizeof(float));

  // The client holds version 0 only if its request says so; here it does not hold version 1.
  const v1::ExchangeReply older = exchange(3, true);
  EXPECT_FALSE(older.header().unchanged()) << "version 0 is held, 1 is answered";
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(ShardServiceTest, AnAnsweredExchangeHoldsNoVersion) {
  Start(kAsync, 2);
  grpc::ClientContext context;
  SetDeadline(context);
  auto stream = stub_->Exchange(&context);
  v1::PushChunk chunk;
  *chunk.mutable_header() = Header(0, 1, 0);
  chunk.mutable_header()->set_pull(true);
  chunk.set_values(Bytes(std::vector<float>(kValues, 1.0f)));
  ASSERT_TRUE(stream->Write(chunk));
  size_t received = 0;
  for (v1::ExchangeReply reply; received < kValues * sizeof(float) && stream->Read(&reply);) {
    received += reply.values().size();
  }

  for (uint64_t sequence = 1; sequence <= 2; ++sequence) {
    EXPECT_EQ(Push(Header(1, sequence, 0), std::vector<float>(kValues, 1.0f)).outcome(),
              v1::APPLIED);
  }

  // The stream is still open. Only the newest version stays alive, once gRPC has released the data
  // sent.
  const absl::Time deadline = absl::Now() + absl::Seconds(20);
  while (service_->ShardReport().live_versions() > 1 && absl::Now() < deadline) {
    std::this_thread::yield();
  }
  EXPECT_EQ(service_->ShardReport().live_versions(), 1u);
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(ShardServiceTest, AnExcuseWithValuesIsRefusedAndEndsTheStream) {
  Start(kHardsync, 2);
  grpc::ClientContext context;
  SetDeadline(context);
  auto stream = stub_->Exchange(&context);
  v1::PushChunk chunk;
  *chunk.mutable_header() = Header(0, 1, 0);
  chunk.mutable_header()->set_count(0);
  chunk.mutable_header()->set_examples(0);
  chunk.set_values(Bytes({1.0f}));
  ASSERT_TRUE(stream->Write(chunk));

  v1::ExchangeReply reply;
  ASSERT_TRUE(stream->Read(&reply));
  EXPECT_EQ(reply.push().outcome(), v1::LENGTH_MISMATCH);
  EXPECT_FALSE(stream->Read(&reply));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(service_->ShardReport().bytes_queued(), 0u);
}

}  // namespace

namespace {

/// Returns, in turn, a tie of bf16 and a slightly larger value: 1 + 1/256 + i/4096 for i = 0 or 1.
std::vector<float> Between() {
  std::vector<float> values(kValues);
  for (size_t i = 0; i < kValues; ++i) values[i] = i % 2 == 0 ? 1 + 1.0f / 256 : 1 + 17.0f / 4096;
  return values;
}

/// Returns the values of Between in bf16: a tie is rounded to the even 1, a larger value is rounded
/// up.
std::vector<float> BetweenAsBf16() {
  std::vector<float> values(kValues);
  for (size_t i = 0; i < kValues; ++i) values[i] = i % 2 == 0 ? 1 : 1 + 1.0f / 128;
  return values;
}

/// Returns the upper halves of fp32 values whose lower halves are 0.
std::string UpperHalves(const std::vector<float>& values) {
  std::string halves;
  for (const float value : values) {
    uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    EXPECT_EQ(bits & 0xffff, 0u);
    halves += static_cast<char>(bits >> 16 & 0xff);
    halves += static_cast<char>(bits >> 24);
  }
  return halves;
}

std::vector<float> Negative(std::vector<float> values) {
  for (float& value : values) value = -value;
  return values;
}

class ShardEncodingTest : public ShardServiceTest {
 protected:
  /// Pushes these messages in their own stream.
  grpc::Status PushMessages(const std::vector<v1::PushChunk>& chunks, v1::PushReply& reply) {
    grpc::ClientContext context;
    SetDeadline(context);
    auto writer = stub_->Push(&context, &reply);
    for (const v1::PushChunk& chunk : chunks) {
      if (!writer->Write(chunk)) break;
    }
    writer->WritesDone();
    return writer->Finish();
  }

  v1::PushChunk Chunk(v1::Encoding encoding, const std::string& bytes,
                      uint64_t sequence = 1) const {
    v1::PushChunk chunk;
    *chunk.mutable_header() = Header(0, sequence, 0);
    chunk.set_encoding(encoding);
    chunk.set_values(bytes);
    return chunk;
  }

  /// Pulls the weights in `encoding` and returns their bytes. Every message must name the encoding.
  std::string PullBytes(v1::Encoding encoding) {
    grpc::ClientContext context;
    SetDeadline(context);
    v1::PullRequest request;
    request.set_shard_map(map());
    request.set_weights_encoding(encoding);
    auto reader = stub_->Pull(&context, request);
    std::string bytes;
    for (v1::WeightsChunk chunk; reader->Read(&chunk);) {
      EXPECT_EQ(chunk.encoding(), encoding);
      EXPECT_LE(chunk.values().size(), 512 / (encoding == v1::FP32 ? 1u : 2u));
      bytes += chunk.values();
    }
    EXPECT_TRUE(reader->Finish().ok());
    return bytes;
  }
};

TEST_F(ShardEncodingTest, APushMeansWhatItsBytesDecodeTo) {
  Start(kAsync, 1);
  v1::PushReply reply;

  ASSERT_TRUE(PushMessages({Chunk(v1::BF16, UpperHalves(BetweenAsBf16()))}, reply).ok());

  EXPECT_EQ(reply.outcome(), v1::APPLIED);
  EXPECT_EQ(Pull().values, Negative(BetweenAsBf16()));
}

TEST_F(ShardEncodingTest, MessagesOfOnePushMayDifferInTheirEncoding) {
  Start(kAsync, 1);
  std::string fp16;  // 1 and the smallest positive fp16, in turn.
  for (size_t i = 0; i < kValues / 4; ++i) fp16 += std::string("\x00\x3c\x01\x00", 4);
  v1::PushChunk first = Chunk(v1::FP16, fp16);
  v1::PushChunk second;
  second.set_offset(kValues / 2);
  second.set_values(Bytes(std::vector<float>(kValues / 2, 0.1f)));
  v1::PushReply reply;

  ASSERT_TRUE(PushMessages({first, second}, reply).ok());

  EXPECT_EQ(reply.outcome(), v1::APPLIED);
  std::vector<float> expected(kValues, -0.1f);
  for (size_t i = 0; i < kValues / 2; ++i) expected[i] = i % 2 == 0 ? -1 : -0x1p-24f;
  EXPECT_EQ(Pull().values, expected);
}

TEST_F(ShardEncodingTest, ARepeatedPushIsKnownByItsValuesWhateverTheyTravelAs) {
  Start(kAsync, 1);
  v1::PushReply reply;
  ASSERT_TRUE(PushMessages({Chunk(v1::BF16, UpperHalves(BetweenAsBf16()))}, reply).ok());

  ASSERT_TRUE(PushMessages({Chunk(v1::FP32, Bytes(BetweenAsBf16()))}, reply).ok());
  EXPECT_EQ(reply.outcome(), v1::DUPLICATE);
  ASSERT_TRUE(PushMessages({Chunk(v1::FP32, Bytes(Between()))}, reply).ok());
  EXPECT_EQ(reply.outcome(), v1::SEQ_REUSED);
}

TEST_F(ShardEncodingTest, APullIsAnsweredAsItAsks) {
  Start(kAsync, 1);
  v1::PushReply reply;
  ASSERT_TRUE(PushMessages({Chunk(v1::FP32, Bytes(Negative(Between())))}, reply).ok());

  EXPECT_EQ(PullBytes(v1::FP32), Bytes(Between()));
  EXPECT_EQ(PullBytes(v1::BF16), UpperHalves(BetweenAsBf16()));
  std::string fp16;  // Both 1 + 4/1024 (exact) and 1 + 4.25/1024 (rounded).
  for (size_t i = 0; i < kValues; ++i) fp16 += "\x04\x3c";
  EXPECT_EQ(PullBytes(v1::FP16), fp16);
}

TEST_F(ShardEncodingTest, AnExchangeIsAnsweredAsItsHeaderAsks) {
  Start(kAsync, 1);
  grpc::ClientContext context;
  SetDeadline(context);
  auto stream = stub_->Exchange(&context);
  for (const v1::Encoding encoding : {v1::BF16, v1::FP32}) {
    const bool is_first = encoding == v1::BF16;
    v1::PushChunk chunk = Chunk(v1::FP32, Bytes(std::vector<float>(kValues, 0)), is_first ? 1 : 2);
    if (is_first) chunk.set_values(Bytes(Negative(Between())));
    chunk.mutable_header()->set_pull(true);
    chunk.mutable_header()->set_weights_encoding(encoding);
    ASSERT_TRUE(stream->Write(chunk));
    const std::string expected = is_first ? UpperHalves(BetweenAsBf16()) : Bytes(Between());
    std::string bytes;
    for (v1::ExchangeReply reply; bytes.size() < expected.size() && stream->Read(&reply);) {
      EXPECT_EQ(reply.encoding(), encoding);
      bytes += reply.values();
    }
    EXPECT_EQ(bytes, expected);
  }
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(ShardEncodingTest, AnOverflowIsRefusedAsAnyInfinity) {
  Start(kAsync, 1);
  std::string fp16;
  for (size_t i = 0; i < kValues; ++i) fp16 += std::string("\x00\x7c", 2);
  v1::PushReply reply;

  ASSERT_TRUE(PushMessages({Chunk(v1::FP16, fp16)}, reply).ok());

  EXPECT_EQ(reply.outcome(), v1::NONFINITE);
}

TEST_F(ShardEncodingTest, WhatItDoesNotUnderstandIsRefusedByName) {
  Start(kAsync, 1);
  v1::PushReply reply;
  const std::string values(kValues * 2, '\0');

  const grpc::Status unknown = PushMessages({Chunk(static_cast<v1::Encoding>(9), values)}, reply);
  const grpc::Status odd = PushMessages({Chunk(v1::FP16, values + "x")}, reply);
  grpc::ClientContext context;
  SetDeadline(context);
  v1::PullRequest request;
  request.set_weights_encoding(static_cast<v1::Encoding>(9));
  const grpc::Status pull = stub_->Pull(&context, request)->Finish();

  EXPECT_EQ(unknown.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(unknown.error_message(), "encoding: 9 is not known here");
  EXPECT_EQ(odd.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(odd.error_message(), "values: 2001 bytes are not whole fp16 values");
  EXPECT_EQ(pull.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(pull.error_message(), "weights_encoding: 9 is not known here");
  EXPECT_EQ(Pull().values, std::vector<float>(kValues, 0));  // The push had no effect.
}

}  // namespace

}  // namespace slipstream
