#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "absl/time/clock.h"
#include "tests/server/service/shared_exchange_fixture.h"

// Tests of exchanges through shared memory by a worker that behaves.

namespace slipstream {
namespace {

TEST_F(SharedExchangeTest, UpdatesAsMessagesDoAndAnswersWithABuffer) {
  Start(kAsync, 1);
  Peer peer(*stub_);
  peer.Attach();

  const v1::ExchangeReply reply = peer.Ask(WithHeader(peer.Chunk(0, kOnes), 1, 0));

  EXPECT_EQ(reply.push().outcome(), v1::APPLIED);
  EXPECT_EQ(reply.header().version(), 1u);
  EXPECT_EQ(reply.values(), "");
  ASSERT_TRUE(reply.has_shared());
  EXPECT_EQ(peer.Read(reply), std::vector<float>(kValues, -1.0f));
  EXPECT_EQ(peer.Generation(reply), reply.shared().generation());
  EXPECT_EQ(Pull(1).values, std::vector<float>(kValues, -1.0f));
  EXPECT_TRUE(peer.End().ok());
}

TEST_F(SharedExchangeTest, ALargeArenaIsReadAnewWithEachPush) {
  Start(kAsync, 1);
  constexpr size_t kLarge = size_t{4} << 20;
  Peer peer(*stub_, kLarge);
  peer.Attach();
  for (uint64_t i = 0; i < 5; ++i) {
    const uint64_t begin = (kLarge - kValues * (i + 1)) * sizeof(float);
    const v1::ExchangeReply reply = peer.Ask(WithHeader(peer.Chunk(0, kOnes, begin), i + 1, i));
    EXPECT_EQ(reply.push().outcome(), v1::APPLIED);
  }
  EXPECT_EQ(Pull(5).values, std::vector<float>(kValues, -5.0f));
}

TEST_F(SharedExchangeTest, AVersionStaysUntilItIsReleased) {
  Start(kAsync, 2);
  Peer peer(*stub_);
  peer.Attach();
  const v1::ExchangeReply reply = peer.Ask(WithHeader(peer.Chunk(0, kOnes), 1, 0));
  peer.Read(reply);

  UpdateByAnother(10);
  EXPECT_EQ(peer.Generation(reply), reply.shared().generation());
  EXPECT_EQ(peer.Read(reply), std::vector<float>(kValues, -1.0f));

  peer.Release();
  // Sent after the release, so its answer shows that the release was received.
  const v1::ExchangeReply next = peer.Ask(WithHeader(peer.Chunk(0, kOnes), 2, 1));
  EXPECT_EQ(next.push().outcome(), v1::APPLIED);
  UpdateByAnother(10);
  EXPECT_NE(peer.Generation(reply), reply.shared().generation());
}

TEST_F(SharedExchangeTest, AVersionIsGivenBackWithTheStream) {
  Start(kAsync, 2);
  Peer peer(*stub_);
  peer.Attach();
  const v1::ExchangeReply reply = peer.Ask(WithHeader(peer.Chunk(0, kOnes), 1, 0));
  peer.Read(reply);

  EXPECT_TRUE(peer.End().ok());

  // The server ends the stream a moment after the worker does. The buffers returned last are used
  // first, so another worker holds some of them meanwhile.
  Peer other(*stub_);
  other.Attach();
  const absl::Time deadline = absl::Now() + kWait;
  while (peer.Generation(reply) == reply.shared().generation() && absl::Now() < deadline) {
    v1::PushChunk chunk = other.Chunk(0, kOnes);
    *chunk.mutable_header() = Header(1, ++others_, 0);
    chunk.mutable_header()->set_pull(true);
    ASSERT_EQ(other.Ask(chunk).push().outcome(), v1::APPLIED);
    UpdateByAnother(2);
    other.Release();
  }
  EXPECT_NE(peer.Generation(reply), reply.shared().generation());
}

TEST_F(SharedExchangeTest, AnAnswerThatCannotBeMappedComesOverTheStream) {
  Start({ConsistencySpec::Policy::kSoftsync}, 2);
  Peer peer(*stub_);
  peer.Attach();
  // The push closes no round, so the answer is version 0, which was made before memory was shared.
  peer.Send(WithHeader(peer.Chunk(0, kOnes), 1, 0));
  v1::ExchangeReply reply;
  ASSERT_TRUE(peer.stream().Read(&reply));
  EXPECT_FALSE(reply.has_shared());
  EXPECT_EQ(reply.header().count(), kValues);
  size_t values = Floats(reply.values()).size();
  while (values < kValues && peer.stream().Read(&reply)) values += Floats(reply.values()).size();
  EXPECT_EQ(values, kValues);

  // The next answer comes through shared memory.
  const v1::ExchangeReply next = peer.Ask(WithHeader(peer.Chunk(0, kOnes), 2, 0));
  EXPECT_EQ(next.push().outcome(), v1::APPLIED);
  EXPECT_EQ(peer.Read(next), std::vector<float>(kValues, -1.0f));
}

}  // namespace
}  // namespace slipstream
