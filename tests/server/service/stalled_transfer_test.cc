#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "tests/server/service/shard_service_fixture.h"

// Peers that begin a transfer, stay, and do not go on with it: what they hold comes back.

namespace slipstream {
namespace {

using testing::HasSubstr;

class StalledTransferTest : public ShardServiceTest {
 protected:
  /// Lets the service's clock run until `condition` holds.
  void LetTimePassUntil(const std::function<bool()>& condition, const std::string& what) {
    const absl::Time deadline = absl::Now() + absl::Seconds(20);
    while (!condition()) {
      ASSERT_LT(absl::Now(), deadline) << "in vain: " << what;
      milliseconds_ += 1000;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }

  void LetTimePassUntilNothingIsQueued() {
    LetTimePassUntil([this] { return service_->ShardReport().bytes_queued() == 0; },
                     "the room of the push to come back");
  }

  /// The first half of a push.
  v1::PushChunk Half(uint32_t worker, uint64_t sequence) const {
    v1::PushChunk chunk;
    *chunk.mutable_header() = Header(worker, sequence, 0);
    chunk.mutable_header()->set_pull(true);
    chunk.set_values(Bytes(std::vector<float>(kValues / 2, 1.0f)));
    return chunk;
  }

  /// Of a client that is sent two messages at most before it reads.
  std::unique_ptr<v1::Shard::Stub> StubThatTakesLittle() const {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 600);
    arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    return v1::Shard::NewStub(grpc::CreateCustomChannel(
        loopback_.address(), grpc::InsecureChannelCredentials(), arguments));
  }

  void AwaitQueued() {
    const absl::Time deadline = absl::Now() + absl::Seconds(20);
    while (service_->ShardReport().bytes_queued() == 0 && absl::Now() < deadline) {
      std::this_thread::yield();
    }
    ASSERT_GT(service_->ShardReport().bytes_queued(), 0u);
  }

  void AwaitVersion(uint64_t version) {
    const absl::Time deadline = absl::Now() + absl::Seconds(20);
    while (service_->ShardReport().version() < version && absl::Now() < deadline) {
      std::this_thread::yield();
    }
    ASSERT_EQ(service_->ShardReport().version(), version);
  }
};

TEST_F(StalledTransferTest, APushThatStopsIsEndedByNameAndItsRoomIsFree) {
  Start(kAsync, 1);
  grpc::ClientContext context;
  SetDeadline(context);
  v1::PushReply reply;
  auto writer = stub_->Push(&context, &reply);
  ASSERT_TRUE(writer->Write(Half(0, 1)));
  AwaitQueued();

  LetTimePassUntilNothingIsQueued();

  const grpc::Status status = writer->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(status.error_message(), HasSubstr("STALLED: the push moved less than"));
  EXPECT_EQ(Pull().values, std::vector<float>(kValues, 0.0f));
  EXPECT_EQ(Push(Header(0, 1, 0), std::vector<float>(kValues, 1.0f)).outcome(), v1::APPLIED)
      << "its sequence was used up";
}

TEST_F(StalledTransferTest, AnExchangeMayRestBetweenPushesAndNotWithin) {
  Start(kAsync, 2);
  grpc::ClientContext resting_context;
  SetDeadline(resting_context);
  auto resting = stub_->Exchange(&resting_context);
  v1::PushChunk whole = Half(1, 1);
  whole.mutable_header()->set_pull(false);
  whole.set_values(Bytes(std::vector<float>(kValues, 1.0f)));
  v1::ExchangeReply reply;
  ASSERT_TRUE(resting->Write(whole) && resting->Read(&reply));
  ASSERT_EQ(reply.push().outcome(), v1::APPLIED);
  grpc::ClientContext context;
  SetDeadline(context);
  auto stalled = stub_->Exchange(&context);
  ASSERT_TRUE(stalled->Write(Half(0, 1)));
  AwaitQueued();

  LetTimePassUntilNothingIsQueued();

  EXPECT_FALSE(stalled->Read(&reply));
  const grpc::Status status = stalled->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(status.error_message(), HasSubstr("STALLED: the exchange moved less than"));
  whole.mutable_header()->set_sequence(2);
  ASSERT_TRUE(resting->Write(whole) && resting->Read(&reply)) << "it was ended, too";
  EXPECT_EQ(reply.push().outcome(), v1::APPLIED);
  resting->WritesDone();
  EXPECT_TRUE(resting->Finish().ok());
}

TEST_F(StalledTransferTest, AReaderThatStopsIsEndedByNameAndItsVersionLetGo) {
  Start(kAsync, 1);
  const auto stub = StubThatTakesLittle();
  grpc::ClientContext context;
  SetDeadline(context);
  v1::PullRequest request;
  request.set_shard_map(map());
  auto reader = stub->Pull(&context, request);
  reader->WaitForInitialMetadata();
  ASSERT_EQ(Push(Header(0, 1, 0), std::vector<float>(kValues, 1.0f)).outcome(), v1::APPLIED);
  ASSERT_EQ(service_->ShardReport().pulls_under_way(), 1u);
  ASSERT_EQ(service_->ShardReport().live_versions(), 2u);

  // In no order: what gRPC still holds of the version's last message it lets go on its own time.
  LetTimePassUntil(
      [this] {
        const v1::ShardStatus status = service_->ShardReport();
        return status.pulls_under_way() == 0 && status.live_versions() == 1;
      },
      "the pull to be ended and its version to be let go");

  v1::WeightsChunk chunk;
  while (reader->Read(&chunk)) EXPECT_EQ(chunk.has_header() ? chunk.header().version() : 0, 0u);
  const grpc::Status status = reader->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(status.error_message(), HasSubstr("STALLED: the pull moved less than"));
}

TEST_F(StalledTransferTest, AnExchangeWhoseAnswerIsNotReadIsEnded) {
  Start(kAsync, 2);
  const auto stub = StubThatTakesLittle();
  grpc::ClientContext context;
  SetDeadline(context);
  auto stream = stub->Exchange(&context);
  v1::PushChunk whole = Half(0, 1);
  whole.set_values(Bytes(std::vector<float>(kValues, 1.0f)));
  ASSERT_TRUE(stream->Write(whole));
  AwaitVersion(1);
  ASSERT_EQ(Push(Header(1, 1, 0), std::vector<float>(kValues, 1.0f)).outcome(), v1::APPLIED);
  ASSERT_EQ(service_->ShardReport().live_versions(), 2u);

  LetTimePassUntil([this] { return service_->ShardReport().live_versions() == 1; },
                   "the version to be let go");

  v1::ExchangeReply reply;
  while (stream->Read(&reply)) {
  }
  EXPECT_THAT(stream->Finish().error_message(), HasSubstr("STALLED: the exchange"));
  // The push itself had come whole.
  EXPECT_EQ(Pull().values, std::vector<float>(kValues, -2.0f));
}

}  // namespace
}  // namespace slipstream
