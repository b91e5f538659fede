#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "tests/server/service/shared_exchange_fixture.h"
#include "worker/client/shard_client.h"
#include "worker/client/shard_exchange.h"

// Tests of the real client and the real shard, connected through shared memory.

namespace slipstream {
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
    feed.OnReady({kParameters / 2, kParameters});
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
}  // namespace slipstream
