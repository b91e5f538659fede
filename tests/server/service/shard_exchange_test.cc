#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "tests/server/service/shard_service_fixture.h"

// Tests of exchanges through the real service: how and when a push is answered.

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
}  // namespace slipstream
