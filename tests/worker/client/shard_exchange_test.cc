#include "worker/client/shard_exchange.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "common/layout/tensor_layout.h"
#include "tests/support/fake_shard.h"

namespace slipstream {
namespace {

constexpr size_t kValues = 100;

ShardMap OneShard() {
  TensorLayout layout;
  EXPECT_TRUE(layout.Append("all", {kValues}).ok());
  return ShardMap::Cut(layout, 1).value();
}

/// One shard, and a client with its own clock that tries to reach it for half a minute.
class ShardExchangeTest : public testing::Test {
 protected:
  ShardExchangeTest() {
    options_.retry.now = [this] { return now_; };
    options_.channel.transport = WireSpec::Transport::kTcp;
  }

  absl::StatusOr<PushReply> Push() {
    ShardClient shard({.address = shard_.address(), .range = {0, kValues}}, options_, sleeper_,
                      cancel_);
    ShardPush push;
    push.header.identity = {.run = 5, .worker = WorkerId{1}, .incarnation = Incarnation{2}};
    push.header.sequence = Sequence{1};
    push.header.shard_map = map_.fingerprint();
    push.values = gradient_;
    ShardExchange exchange(shard, push, WeightsArrival({}));
    const absl::StatusOr<std::optional<ExchangeAnswer>> answer = exchange.Next();
    if (!answer.ok()) return answer.status();
    EXPECT_EQ(exchange.Next().value(), std::nullopt);
    return (*answer)->push;
  }

  const ShardMap map_ = OneShard();
  const std::vector<float> gradient_ = std::vector<float>(kValues, 1);
  FakeShard shard_{kValues, map_.fingerprint()};
  absl::Time now_;
  ShardOptions options_;
  CancelSwitch cancel_;
  Sleeper sleeper_ = [this](absl::Duration wait) {
    now_ += wait;
    return true;
  };
};

// Under hardsync, a round may wait for a slow member for longer than a single call lasts.
TEST_F(ShardExchangeTest, AnAnswerThatIsLateIsNoAbsenceHoweverOften) {
  options_.answer_timeout = absl::Milliseconds(50);
  options_.retry.now = [this] { return now_ += absl::Seconds(10); };  // Passes at each look.
  for (int i = 0; i < 3; ++i) shard_.AddFault(FakeShard::Fault::kAnswerNever);

  const absl::StatusOr<PushReply> reply = Push();

  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_GE(shard_.received(), 4);
  EXPECT_EQ(shard_.taken().size(), 1u);
}

TEST_F(ShardExchangeTest, AShardThatFailsForTooLongIsGivenUp) {
  for (int i = 0; i < 1000; ++i) shard_.AddFault(FakeShard::Fault::kBreakBeforeTaking);
  const absl::Time begin = now_;

  const absl::Status status = Push().status();

  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_NE(status.message().find(shard_.address()), absl::string_view::npos) << status;
  EXPECT_EQ(now_ - begin, options_.retry.give_up_after);
}

TEST_F(ShardExchangeTest, AShardThatHasTooMuchToDoIsAskedAgainAndGivenUpAsBusy) {
  for (int i = 0; i < 3; ++i) shard_.AddFault(FakeShard::Fault::kRefuseForLackOfMemory);
  EXPECT_TRUE(Push().ok());

  for (int i = 0; i < 1000; ++i) shard_.AddFault(FakeShard::Fault::kRefuseForLackOfMemory);
  EXPECT_EQ(Push().status().code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(ShardExchangeTest, AShardThatStaysOverloadedIsGivenUp) {
  for (int i = 0; i < 3; ++i) shard_.AddFault(FakeShard::Fault::kRetryLater);
  options_.overload_timeout = absl::Milliseconds(1);

  const absl::Status status = Push().status();

  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_NE(status.message().find("overloaded"), absl::string_view::npos) << status;
}

}  // namespace
}  // namespace slipstream
