#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "tests/server/data_plane/shard_service_fixture.h"

// Tests of senders that make a second call while an older one of theirs is still open. The
// service's clock stands still, so nothing here ends because of time.

namespace slipstream {
namespace {

using testing::HasSubstr;

const std::vector<float> kOnes(kValues, 1.0f);

class SupersededCallTest : public ShardServiceTest {
 protected:
  /// A stream that stays open until the end of the test.
  struct Stream {
    explicit Stream(v1::Shard::Stub& stub) {
      SetDeadline(context);
      stream = stub.Exchange(&context);
    }
    ~Stream() { context.TryCancel(); }

    v1::PushReply Ask(const v1::PushChunk& chunk) {
      v1::ExchangeReply reply;
      EXPECT_TRUE(stream->Write(chunk) && stream->Read(&reply));
      return reply.push();
    }

    void ExpectSuperseded() {
      v1::ExchangeReply reply;
      while (stream->Read(&reply)) {
      }
      const grpc::Status status = stream->Finish();
      EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE) << status.error_message();
      EXPECT_THAT(status.error_message(), HasSubstr("SUPERSEDED"));
    }

    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReaderWriter<v1::PushChunk, v1::ExchangeReply>> stream;
  };

  /// Returns a complete push. It does not ask for weights, which would have to be read.
  v1::PushChunk Whole(uint32_t worker, uint64_t sequence) const {
    v1::PushChunk chunk = Begin(worker, sequence, kValues);
    chunk.mutable_header()->set_pull(false);
    return chunk;
  }

  /// Returns a stream with a push that has reached the shard and is not complete.
  std::unique_ptr<Stream> HalfAPush(uint32_t worker) {
    auto half = std::make_unique<Stream>(*stub_);
    EXPECT_TRUE(half->stream->Write(Begin(worker, 1, kValues / 2)));
    AwaitQueued();
    return half;
  }

  /// Returns the number of pushes that have been decided.
  static uint64_t Decided(const v1::ShardStatus& status) {
    uint64_t decided = 0;
    for (const auto& [outcome, count] : status.outcomes()) decided += count;
    return decided;
  }

  /// Repeats the push for as long as the answer is RETRY_LATER.
  v1::PushReply AskUntilTaken(Stream& stream, const v1::PushChunk& chunk) {
    const absl::Time deadline = absl::Now() + absl::Seconds(20);
    v1::PushReply reply;
    do {
      reply = stream.Ask(chunk);
    } while (reply.outcome() == v1::RETRY_LATER && absl::Now() < deadline);
    return reply;
  }
};

TEST_F(SupersededCallTest, HalfAPushMakesRoomForItsRepetition) {
  Start(kAsync, 2);
  const auto older = HalfAPush(0);

  Stream newer(*stub_);
  EXPECT_EQ(AskUntilTaken(newer, Whole(0, 1)).outcome(), v1::APPLIED);

  older->ExpectSuperseded();
  EXPECT_EQ(newer.Ask(Whole(0, 2)).outcome(), v1::APPLIED);
}

TEST_F(SupersededCallTest, HalfAPushMakesRoomForItsSendersNextIncarnation) {
  Start(kAsync, 2);
  const auto older = HalfAPush(0);
  orders_.view.number = ViewNumber{2};
  orders_.view.members[0].incarnation = Incarnation{9};
  SetPhase(Phase::kTraining);

  Stream newer(*stub_);
  v1::PushChunk chunk = Whole(0, 1);
  chunk.mutable_header()->mutable_identity()->set_incarnation(9);
  EXPECT_EQ(AskUntilTaken(newer, chunk).outcome(), v1::APPLIED);

  older->ExpectSuperseded();
}

TEST_F(SupersededCallTest, OfPushesByThemselvesTheNewestGoesOn) {
  Start(kAsync, 2);
  grpc::ClientContext context;
  SetDeadline(context);
  v1::PushReply unused;
  auto older = stub_->Push(&context, &unused);
  ASSERT_TRUE(older->Write(Begin(0, 1, kValues / 2)));
  AwaitQueued();

  const absl::Time deadline = absl::Now() + absl::Seconds(20);
  v1::PushReply reply;
  do {
    reply = Push(Header(0, 1, 0), kOnes);
  } while (reply.outcome() == v1::RETRY_LATER && absl::Now() < deadline);
  EXPECT_EQ(reply.outcome(), v1::APPLIED);

  EXPECT_THAT(older->Finish().error_message(), HasSubstr("SUPERSEDED"));
}

TEST_F(SupersededCallTest, APushByItselfLeavesAnExchangeOfItsSenderOpen) {
  Start(kAsync, 2);
  Stream stream(*stub_);
  EXPECT_EQ(stream.Ask(Whole(0, 1)).outcome(), v1::APPLIED);

  EXPECT_EQ(Push(Header(0, 2, 0), kOnes).outcome(), v1::APPLIED);

  EXPECT_EQ(stream.Ask(Whole(0, 3)).outcome(), v1::APPLIED);
}

TEST_F(SupersededCallTest, WhoIsNoMemberEndsNobodysCall) {
  Start(kAsync, 2);
  const auto honest = HalfAPush(0);

  Stream impostor(*stub_);
  v1::PushChunk forged = Whole(0, 1);
  forged.mutable_header()->mutable_identity()->set_incarnation(7);
  EXPECT_EQ(impostor.Ask(forged).outcome(), v1::RETRY_LATER) << "a view may be on its way";
  forged = Whole(0, 1);
  forged.mutable_header()->mutable_identity()->set_run(kRun + 1);
  EXPECT_EQ(impostor.Ask(forged).outcome(), v1::WRONG_RUN);
  Stream beside(*stub_);
  EXPECT_EQ(beside.Ask(Whole(1, 1)).outcome(), v1::APPLIED);

  v1::PushChunk rest;
  rest.set_offset(kValues / 2);
  rest.set_values(Bytes(std::vector<float>(kValues / 2, 1.0f)));
  EXPECT_EQ(honest->Ask(rest).outcome(), v1::APPLIED);
}

TEST_F(SupersededCallTest, AMemberThatReadsNoAnswerHoldsOneVersionHoweverOftenItAsks) {
  Start(kAsync, 2);
  const auto stub = StubThatTakesLittle();
  std::vector<std::unique_ptr<Stream>> streams;
  for (uint64_t asked = 1; asked <= 10; ++asked) {
    streams.push_back(std::make_unique<Stream>(*stub));
    ASSERT_TRUE(streams.back()->stream->Write(Begin(0, 1, kValues)));
    AwaitReport([asked](const v1::ShardStatus& status) { return Decided(status) == 2 * asked - 1; },
                "the push to be answered");
    ASSERT_EQ(Push(Header(1, asked, 0), kOnes).outcome(), v1::APPLIED);
  }

  AwaitReport([](const v1::ShardStatus& status) { return status.live_versions() <= 2; },
              "the versions of all but the last call to be let go");

  streams.front()->ExpectSuperseded();
}

TEST_F(SupersededCallTest, ThoseWhoWaitForARoundAreOneForEachMember) {
  Start(kHardsync, 2);
  std::vector<std::unique_ptr<Stream>> streams;
  for (uint64_t asked = 1; asked <= 3; ++asked) {
    streams.push_back(std::make_unique<Stream>(*stub_));
    ASSERT_TRUE(streams.back()->stream->Write(Begin(0, 1, kValues)));
    AwaitReport(
        [asked](const v1::ShardStatus& status) {
          return Decided(status) == asked && status.parked_calls() == 1;
        },
        "the push to wait, and no other");
  }
  streams[0]->ExpectSuperseded();
  streams[1]->ExpectSuperseded();

  Stream other(*stub_);
  EXPECT_EQ(other.Ask(Begin(1, 1, kValues)).outcome(), v1::APPLIED);

  v1::ExchangeReply reply;
  ASSERT_TRUE(streams.back()->stream->Read(&reply));
  EXPECT_THAT(reply.push().outcome(), testing::AnyOf(v1::APPLIED, v1::DUPLICATE));
  EXPECT_EQ(Pull(1).values, std::vector<float>(kValues, -1.0f)) << "a push counted twice";
}

TEST_F(SupersededCallTest, InitialWeightsAreTakenFromTheNewestCall) {
  Serve(kAsync, 1);
  grpc::ClientContext context;
  SetDeadline(context);
  v1::InitializeReply unused;
  auto half = stub_->Initialize(&context, &unused);
  ASSERT_TRUE(half->Write(InitialWeights(std::vector<float>(kValues / 2, 1.0f))));
  auto end = std::async(std::launch::async, [&half] { return half->Finish(); });

  // Send again and again, since nothing shows when the half has arrived.
  while (end.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
    const grpc::Status sent = SendInitialWeights(kOnes);
    // The half may arrive after the first of these calls.
    ASSERT_TRUE(sent.ok() || sent.error_code() == grpc::StatusCode::UNAVAILABLE);
  }

  EXPECT_THAT(end.get().error_message(), HasSubstr("SUPERSEDED"));
}

}  // namespace
}  // namespace slipstream
