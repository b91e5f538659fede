#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "common/memory/large_pages.h"
#include "server/data_plane/shared_memory_use.h"
#include "tests/server/data_plane/shared_exchange_fixture.h"
#include "worker/client/shard_client.h"
#include "worker/client/shard_exchange.h"

// Tests of exchanges through shared memory by a worker that behaves: a hand-made one, and the real
// client.

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
  EXPECT_EQ(peer.Filling(reply), reply.shared().filling());
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
  EXPECT_EQ(peer.Filling(reply), reply.shared().filling());
  EXPECT_EQ(peer.Read(reply), std::vector<float>(kValues, -1.0f));

  peer.Release();
  // Sent after the release, so its answer shows that the release was received.
  const v1::ExchangeReply next = peer.Ask(WithHeader(peer.Chunk(0, kOnes), 2, 1));
  EXPECT_EQ(next.push().outcome(), v1::APPLIED);
  UpdateByAnother(10);
  EXPECT_NE(peer.Filling(reply), reply.shared().filling());
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
  while (peer.Filling(reply) == reply.shared().filling() && absl::Now() < deadline) {
    v1::PushChunk chunk = other.Chunk(0, kOnes);
    *chunk.mutable_header() = Header(1, ++others_, 0);
    chunk.mutable_header()->set_pull(true);
    ASSERT_EQ(other.Ask(chunk).push().outcome(), v1::APPLIED);
    UpdateByAnother(2);
    other.Release();
  }
  EXPECT_NE(peer.Filling(reply), reply.shared().filling());
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

namespace {

constexpr size_t kParameters = 3000;  // Several chunks.

class SharedClientTest : public SharedExchangeTest {
 protected:
  SharedClientTest() {
    values_ = kParameters;
    for (const size_t part : {0, 1}) std::ranges::fill(arena_.part(part), 1.0f);
  }

  void Connect(WireSpec::Transport transport) {
    Start(kAsync, 1);
    client_ = std::make_unique<ShardClient>(
        ShardClient::Place{.address = loopback_.address(), .range = {0, kParameters}},
        ShardOptions{.chunk_bytes = 4096, .arena = &arena_, .channel = {.transport = transport}},
        [](absl::Duration) { return true; }, cancel_);
  }

  /// Exchanges the gradient in this part of the arena. Fails like ShardExchange.
  absl::StatusOr<PushOutcome> Exchange(size_t part, GradientFeed* feed = nullptr) {
    const ShardPush push = {.header = {.identity = {kRun, WorkerId{0}, Incarnation{1}},
                                       .sequence = Sequence{pushes_ + 1},
                                       .shard_map = map(),
                                       .base = Version{pushes_},
                                       .examples = 32,
                                       .pull = true},
                            .values = arena_.part(part),
                            .feed = feed};
    ShardExchange exchange(*client_, push, WeightsArrival(weights_));
    const absl::StatusOr<std::optional<ExchangeAnswer>> answer = exchange.Next();
    if (!answer.ok()) return answer.status();
    if (const auto end = exchange.Next(); !end.ok()) return end.status();
    ++pushes_;
    return (*answer)->push.outcome;
  }

  void AwaitQueued() {
    const absl::Time deadline = absl::Now() + kWait;
    while (service_->ShardReport().bytes_queued() == 0 && absl::Now() < deadline) {
      std::this_thread::yield();
    }
    EXPECT_GT(service_->ShardReport().bytes_queued(), 0u);
  }

  const SharedArena arena_ = SharedArena::Make(2, kParameters).value();
  CancelSwitch cancel_;
  std::unique_ptr<ShardClient> client_;
  std::vector<float> weights_ = std::vector<float>(kParameters);
  uint64_t pushes_ = 0;
};

TEST_F(SharedClientTest, GradientsOfAllPartsCount) {
  Connect(WireSpec::Transport::kShm);
  for (const size_t part : {0, 1, 0}) {
    std::ranges::fill(arena_.part(part), static_cast<float>(part + 1));
    const auto outcome = Exchange(part);
    ASSERT_TRUE(outcome.ok()) << outcome.status();
    EXPECT_EQ(*outcome, PushOutcome::kApplied);
  }
  EXPECT_EQ(weights_, std::vector<float>(kParameters, -4.0f));
}

// An aborted push ends the stream, so the next push has to set up shared memory anew.
TEST_F(SharedClientTest, APushThatWasGivenUpLeavesTheNextToCount) {
  Connect(WireSpec::Transport::kShm);
  ASSERT_TRUE(Exchange(0).ok());
  for (int i = 0; i < 3; ++i) {
    GradientFeed feed(kParameters);
    feed.OnGradientReady({kParameters / 2, kParameters});
    std::thread step([&] {
      AwaitQueued();  // Part of the push has reached the shard.
      feed.Abort();
    });
    EXPECT_TRUE(absl::IsAborted(Exchange(0, &feed).status()));
    step.join();
    std::ranges::fill(arena_.part(0), 1e30f);  // Must not count: the push was given up.

    const auto outcome = Exchange(1);
    ASSERT_TRUE(outcome.ok()) << outcome.status();
    EXPECT_EQ(*outcome, PushOutcome::kApplied);
    std::ranges::fill(arena_.part(0), 1.0f);
  }
  EXPECT_EQ(weights_, std::vector<float>(kParameters, -4.0f));
}

TEST_F(SharedClientTest, AutoFindsSharedMemoryToo) {
  Connect(WireSpec::Transport::kAuto);
  ASSERT_TRUE(Exchange(0).ok());
  EXPECT_EQ(weights_, std::vector<float>(kParameters, -1.0f));
}

}  // namespace

namespace {

TEST(SharedMemoryUseTest, KeepsSmallArenasAsLongAsThereIsRoom) {
  SharedMemoryUse use;
  constexpr uint64_t kMost = kLargePagesBytesMin - 1;
  uint64_t kept = 0;
  while (use.Keep(kMost)) kept += kMost;
  EXPECT_GT(kept + kMost, SharedMemoryUse::kKeptBytesMax);
  EXPECT_LE(kept, SharedMemoryUse::kKeptBytesMax);
  EXPECT_FALSE(use.Keep(kMost));

  use.GiveBack(kMost);
  EXPECT_TRUE(use.Keep(kMost));
  EXPECT_FALSE(use.Keep(kMost));
}

TEST(SharedMemoryUseTest, KeepsNothingOfWhatLiesOnLargePages) {
  SharedMemoryUse use;
  EXPECT_FALSE(use.Keep(kLargePagesBytesMin));
  EXPECT_TRUE(use.Keep(4096)) << "and nothing is taken by it";
}

}  // namespace

}  // namespace slipstream
