// Pushes of a worker whose group has an aggregator before the shard.

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/time/time.h"
#include "common/layout/tensor_layout.h"
#include "tests/support/fake_shard.h"
#include "worker/client/push_encoder.h"
#include "worker/client/shard_client.h"
#include "worker/client/shard_exchange.h"

namespace slipstream {
namespace {

constexpr size_t kValues = 100;

ShardMap OneShard() {
  TensorLayout layout;
  EXPECT_TRUE(layout.Append("all", {kValues}).ok());
  return ShardMap::Cut(layout, 1).value();
}

/// A shard, another one in the place of its aggregator, and a client with its own clock.
class AggregatorLinkTest : public testing::Test {
 protected:
  AggregatorLinkTest() {
    options_.now = [this] { return now_; };
    options_.channel.transport = WireSpec::Transport::kTcp;
    MakeClient();
  }

  void MakeClient() {
    client_ =
        std::make_unique<ShardClient>(ShardClient::Place{.address = shard_.address(),
                                                         .range = {0, kValues},
                                                         .aggregator = aggregator_->address()},
                                      options_, sleeper_, cancel_);
  }

  /// Pushes to the end, and returns the answer. The fakes take sequences in order, so a push that
  /// only one of them has taken is followed by one of the same sequence.
  absl::StatusOr<PushReply> Push(uint64_t sequence = 1, PushEncoder* encoder = nullptr) {
    return Exchange(sequence, gradient_, encoder);
  }

  absl::StatusOr<PushReply> Exchange(uint64_t sequence, std::span<const float> values,
                                     PushEncoder* encoder) {
    ShardPush push = {.header = {}, .values = values, .encoder = encoder};
    push.header.identity = {.run = 5, .worker = WorkerId{1}, .incarnation = Incarnation{2}};
    push.header.sequence = Sequence{sequence};
    push.header.shard_map = map_.fingerprint();
    push.header.pull = !values.empty();
    std::vector<float> weights(kValues);
    ShardExchange exchange(*client_, push, client_->ArrivalOf(weights, nullptr));
    absl::StatusOr<PushReply> reply = absl::InternalError("no answer");
    for (;;) {
      const absl::StatusOr<std::optional<ExchangeAnswer>> answer = exchange.Next();
      if (!answer.ok()) return answer.status();
      if (!answer->has_value()) return reply;
      reply = (*answer)->push;
    }
  }

  const ShardMap map_ = OneShard();
  const std::vector<float> gradient_ = std::vector<float>(kValues, 1);
  FakeShard shard_{kValues, map_.fingerprint()};
  std::unique_ptr<FakeShard> aggregator_ = std::make_unique<FakeShard>(kValues, map_.fingerprint());
  absl::Time now_;
  ShardOptions options_;
  CancelSwitch cancel_;
  Sleeper sleeper_ = [this](absl::Duration wait) {
    now_ += wait;
    return true;
  };
  std::unique_ptr<ShardClient> client_;
};

TEST_F(AggregatorLinkTest, PushesWithValuesGoToTheAggregator) {
  ASSERT_TRUE(Push(1).ok());
  ASSERT_TRUE(Push(2).ok());
  EXPECT_EQ(aggregator_->taken().size(), 2u);
  EXPECT_EQ(shard_.received(), 0);
}

TEST_F(AggregatorLinkTest, APushThatIsNotCombinedGoesToTheShardAndTheNextToTheAggregator) {
  aggregator_->RefuseNext(v1::NOT_COMBINED);

  const absl::StatusOr<PushReply> reply = Push();

  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->outcome, PushOutcome::kApplied);
  EXPECT_EQ(now_, absl::Time()) << "without a pause";
  ASSERT_EQ(shard_.taken().size(), 1u);
  EXPECT_EQ(shard_.taken()[0].values, gradient_);
  ASSERT_TRUE(Push().ok());
  EXPECT_EQ(aggregator_->taken().size(), 1u);
  EXPECT_EQ(shard_.received(), 1);
}

TEST_F(AggregatorLinkTest, APushWhoseStreamBreaksGoesToTheShardAtOnce) {
  aggregator_->AddFault(FakeShard::Fault::kBreakBeforeTaking);

  const absl::StatusOr<PushReply> reply = Push();

  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->outcome, PushOutcome::kApplied);
  EXPECT_EQ(now_, absl::Time());
}

TEST_F(AggregatorLinkTest, WeightsThatBreakOffComeFromTheShard) {
  aggregator_->AddFault(FakeShard::Fault::kBreakWithinWeights);
  options_.chunk_bytes = 64;
  MakeClient();
  ASSERT_TRUE(Push().ok());
  EXPECT_EQ(aggregator_->taken().size(), 1u);
  EXPECT_EQ(shard_.received(), 1);
}

TEST_F(AggregatorLinkTest, AnAggregatorThatRefusedIsLeftAloneForAWhile) {
  aggregator_->RefuseNext(v1::TOO_STALE);
  ASSERT_TRUE(Push(1).ok());
  ASSERT_TRUE(Push(2).ok());
  EXPECT_EQ(aggregator_->received(), 1);
  EXPECT_EQ(shard_.received(), 2);

  now_ += AggregatorUse::kFirstPause;
  ASSERT_TRUE(Push(1).ok());
  EXPECT_EQ(aggregator_->taken().size(), 1u);
}

TEST_F(AggregatorLinkTest, AnAggregatorThatIsGoneIsNoReasonToFail) {
  aggregator_.reset();
  for (uint64_t sequence = 1; sequence <= 3; ++sequence) {
    const absl::StatusOr<PushReply> reply = Push(sequence);
    ASSERT_TRUE(reply.ok()) << reply.status();
    now_ += absl::Minutes(1);
  }
  EXPECT_EQ(shard_.taken().size(), 3u);
}

TEST_F(AggregatorLinkTest, AnExcuseGoesToTheShardAndEndsTheStreamToTheAggregator) {
  ASSERT_TRUE(Push(1).ok());
  EXPECT_TRUE(client_->aggregator()->connection().is_open());
  ASSERT_TRUE(Exchange(1, {}, nullptr).ok());
  EXPECT_FALSE(client_->aggregator()->connection().is_open());
  EXPECT_EQ(shard_.received(), 1);
}

TEST_F(AggregatorLinkTest, TheShardGetsTheSameBytesAndTheErrorIsFedBackOnce) {
  options_.push_encoding = Encoding::kInt8;
  MakeClient();
  PushEncoder encoder(Encoding::kInt8, kValues);
  aggregator_->RefuseNext(v1::NOT_COMBINED);
  encoder.Begin();
  ASSERT_TRUE(Push(1, &encoder).ok());
  const std::vector<float> by_shard = shard_.taken().at(0).values;

  PushEncoder direct(Encoding::kInt8, kValues);
  direct.Begin();
  ASSERT_TRUE(Push(1, &direct).ok());  // The aggregator takes it.
  EXPECT_EQ(aggregator_->taken().at(0).values, by_shard);

  encoder.Begin();
  direct.Begin();
  ASSERT_TRUE(Push(2, &encoder).ok());
  ASSERT_TRUE(Push(3, &direct).ok());
  EXPECT_EQ(aggregator_->taken().at(1).values, aggregator_->taken().at(2).values);
}

}  // namespace
}  // namespace slipstream
