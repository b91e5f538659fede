#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "tests/server/data_plane/shard_service_fixture.h"

// Tests of streams of chunks that do not make a push: each is refused by name, or ended, and leaves
// nothing behind. Peers may also begin a transfer and then stop, without leaving: the server frees
// what they hold.

namespace slipstream {
namespace {

using testing::HasSubstr;

class BrokenStreamTest : public ShardServiceTest {
 protected:
  void SetUp() override { Start(kAsync, 1); }

  v1::PushChunk First(size_t values) const {
    v1::PushChunk chunk = Further(0, values);
    *chunk.mutable_header() = Header(0, 1, 0);
    return chunk;
  }

  static v1::PushChunk Further(uint64_t offset, size_t values) {
    v1::PushChunk chunk;
    chunk.set_offset(offset);
    chunk.set_values(Bytes(std::vector<float>(values, 1.0f)));
    return chunk;
  }

  struct Ended {
    v1::PushReply reply;
    grpc::Status status;
  };

  /// Exchanges these messages. Returns the reply and the status.
  Ended Exchange(const std::vector<v1::PushChunk>& chunks) {
    grpc::ClientContext context;
    SetDeadline(context);
    auto stream = stub_->Exchange(&context);
    for (const v1::PushChunk& chunk : chunks) {
      if (!stream->Write(chunk)) break;
    }
    Ended ended;
    v1::ExchangeReply reply;
    if (stream->Read(&reply)) ended.reply = reply.push();
    EXPECT_FALSE(stream->Read(&reply)) << "the stream went on";
    ended.status = stream->Finish();
    return ended;
  }

  /// Checks that nothing is queued, that the model is unchanged, and that the push can still be
  /// made.
  void ExpectNoEffect() {
    AwaitReport([](const v1::ShardStatus& status) { return status.bytes_queued() == 0; },
                "the memory of the push to come back");
    const Pulled pulled = Pull();
    EXPECT_EQ(pulled.version, 0u);
    EXPECT_EQ(pulled.values, std::vector<float>(kValues, 0.0f));
    EXPECT_EQ(Push(Header(0, 1, 0), std::vector<float>(kValues, 1.0f)).outcome(), v1::APPLIED);
  }

  void ExpectRefused(const std::vector<v1::PushChunk>& chunks, const std::string& words) {
    const Ended ended = Exchange(chunks);

    EXPECT_EQ(ended.reply.outcome(), v1::LENGTH_MISMATCH);
    EXPECT_THAT(ended.reply.message(), HasSubstr(words));
    EXPECT_EQ(ended.status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    ExpectNoEffect();
  }
};

TEST_F(BrokenStreamTest, AChunkThatCameBefore) {
  ExpectRefused({First(500), Further(0, 500)}, "came twice");
}

TEST_F(BrokenStreamTest, AChunkThatOverlapsAnother) {
  ExpectRefused({First(500), Further(499, 501)}, "came twice");
}

TEST_F(BrokenStreamTest, AChunkBeyondTheEnd) {
  ExpectRefused({First(500), Further(500, 501)}, "were announced");
}

TEST_F(BrokenStreamTest, APushWithinAPush) {
  ExpectRefused({First(500), First(500)}, "before the one in front of it was complete");
}

TEST_F(BrokenStreamTest, AChunkWithoutAPush) {
  ExpectRefused({Further(0, 500)}, "values came without a header");
}

TEST_F(BrokenStreamTest, AChunkThatEndsWithinAValue) {
  v1::PushChunk ragged = Further(500, 500);
  ragged.mutable_values()->pop_back();

  const Ended ended = Exchange({First(500), ragged});

  EXPECT_EQ(ended.status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_NE(ended.status.error_message(), "");
  ExpectNoEffect();
}

TEST_F(BrokenStreamTest, AMessageBeyondWhatTheServerTakes) {
  const Ended ended = Exchange({First(500), Further(500, size_t{2} << 20)});

  EXPECT_EQ(ended.status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  ExpectNoEffect();
}

TEST_F(BrokenStreamTest, AStreamThatIsResetBetweenChunks) {
  grpc::ClientContext context;
  SetDeadline(context);
  auto stream = stub_->Exchange(&context);
  ASSERT_TRUE(stream->Write(First(500)));
  AwaitQueued();

  context.TryCancel();

  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
  ExpectNoEffect();
}

}  // namespace

namespace {

using testing::HasSubstr;

class StalledTransferTest : public ShardServiceTest {
 protected:
  /// Advances the service's clock until `condition` holds.
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
                     "the memory of the push to come back");
  }
};

TEST_F(StalledTransferTest, APushThatStopsIsEndedByNameAndItsRoomIsFree) {
  Start(kAsync, 1);
  grpc::ClientContext context;
  SetDeadline(context);
  v1::PushReply reply;
  auto writer = stub_->Push(&context, &reply);
  ASSERT_TRUE(writer->Write(Begin(0, 1, kValues / 2)));
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
  v1::PushChunk whole = Begin(1, 1, kValues);
  whole.mutable_header()->set_pull(false);
  v1::ExchangeReply reply;
  ASSERT_TRUE(resting->Write(whole) && resting->Read(&reply));
  ASSERT_EQ(reply.push().outcome(), v1::APPLIED);
  grpc::ClientContext context;
  SetDeadline(context);
  auto stalled = stub_->Exchange(&context);
  ASSERT_TRUE(stalled->Write(Begin(0, 1, kValues / 2)));
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

TEST_F(StalledTransferTest, AWorkerMayTakeItsTimeBeforeTheChunkThatEndsItsPush) {
  Start(kAsync, 2);
  grpc::ClientContext patient_context;
  SetDeadline(patient_context);
  auto patient = stub_->Exchange(&patient_context);
  v1::PushChunk most = Begin(1, 1, kValues / 2);
  most.set_offset(kValues / 2);
  ASSERT_TRUE(patient->Write(most));
  AwaitQueued();
  grpc::ClientContext context;
  SetDeadline(context);
  auto stalled = stub_->Exchange(&context);
  ASSERT_TRUE(stalled->Write(Begin(0, 1, kValues / 2)));

  const uint64_t one_push = kValues * sizeof(float);
  LetTimePassUntil([&] { return service_->ShardReport().bytes_queued() == one_push; },
                   "the push that stalls to be ended");

  v1::PushChunk rest;
  rest.set_values(Bytes(std::vector<float>(kValues / 2, 1.0f)));
  v1::ExchangeReply reply;
  ASSERT_TRUE(patient->Write(rest) && patient->Read(&reply)) << "it was ended, too";
  EXPECT_EQ(reply.push().outcome(), v1::APPLIED);
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
  // The answer to the push may be under way, too.
  ASSERT_GE(service_->ShardReport().pulls_under_way(), 1u);
  ASSERT_EQ(service_->ShardReport().live_versions(), 2u);

  // The order is not fixed: gRPC may release the version's last message later than it ends the
  // pull.
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

TEST_F(StalledTransferTest, ASlowReaderMakesRoomForOnesThatWait) {
  Start(kAsync, 1);
  v1::PullRequest request;
  request.set_shard_map(map());
  struct Reader {
    grpc::ClientContext context;
    std::unique_ptr<v1::Shard::Stub> stub;
    std::unique_ptr<grpc::ClientReader<v1::WeightsChunk>> stream;
  };
  std::vector<std::unique_ptr<Reader>> slow;
  for (int i = 0; i < 2; ++i) {
    slow.push_back(std::make_unique<Reader>());
    SetDeadline(slow.back()->context);
    slow.back()->stub = StubThatTakesLittle();
    slow.back()->stream = slow.back()->stub->Pull(&slow.back()->context, request);
    slow.back()->stream->WaitForInitialMetadata();
    // Readers of one version would share it.
    ASSERT_EQ(Push(Header(0, static_cast<uint64_t>(i) + 1, static_cast<uint64_t>(i)),
                   std::vector<float>(kValues, 1.0f))
                  .outcome(),
              v1::APPLIED);
  }
  milliseconds_ += 29'000;  // Too short to count as stalled.
  ASSERT_EQ(service_->ShardReport().pulls_under_way(), 2u);

  std::thread clock([this] {
    LetTimePassUntil([this] { return service_->ShardReport().pulls_under_way() < 2; },
                     "a slow reader to be ended");
  });
  EXPECT_TRUE(Pull().status.ok());
  clock.join();

  v1::WeightsChunk chunk;
  std::vector<std::string> ends;
  for (const auto& reader : slow) {
    while (reader->stream->Read(&chunk)) {
    }
    ends.emplace_back(reader->stream->Finish().error_message());
  }
  EXPECT_THAT(ends, testing::Contains(HasSubstr("OVERTAKEN: others wait for a place")));
}

TEST_F(StalledTransferTest, AnExchangeWhoseAnswerIsNotReadIsEnded) {
  Start(kAsync, 2);
  const auto stub = StubThatTakesLittle();
  grpc::ClientContext context;
  SetDeadline(context);
  auto stream = stub->Exchange(&context);
  ASSERT_TRUE(stream->Write(Begin(0, 1, kValues)));
  AwaitReport([](const v1::ShardStatus& status) { return status.version() == 1; }, "version 1");
  ASSERT_EQ(Push(Header(1, 1, 0), std::vector<float>(kValues, 1.0f)).outcome(), v1::APPLIED);
  ASSERT_EQ(service_->ShardReport().live_versions(), 2u);

  LetTimePassUntil([this] { return service_->ShardReport().live_versions() == 1; },
                   "the version to be let go");

  v1::ExchangeReply reply;
  while (stream->Read(&reply)) {
  }
  EXPECT_THAT(stream->Finish().error_message(), HasSubstr("STALLED: the exchange"));
  // The push itself had arrived completely.
  EXPECT_EQ(Pull().values, std::vector<float>(kValues, -2.0f));
}

}  // namespace

}  // namespace slipstream
