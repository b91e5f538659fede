#include "worker/client/parameter_client.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/base/mutex.h"
#include "common/layout/tensor_layout.h"
#include "tests/support/fake_shard.h"

namespace slipstream {
namespace {

constexpr size_t kParameters = 10'000;
constexpr ShardId kShard0{0};
constexpr ShardId kShard1{1};

ShardMap TwoShards() {
  TensorLayout layout;
  EXPECT_TRUE(layout.Append("all", {kParameters}).ok());
  return ShardMap::Cut(layout, 2).value();
}

/// Notes what it is told.
class NotingListener final : public WeightsListener {
 public:
  void OnWeightsArrived(ParameterRange range) override {
    MutexLock lock(mutex_);
    values_ += range.size();
  }
  void OnWeightsRevoked(ParameterRange range) override {
    MutexLock lock(mutex_);
    revoked_.push_back(range);
  }
  void OnWeightsAbandoned() override {
    MutexLock lock(mutex_);
    is_abandoned_ = true;
  }

  size_t values() const {
    MutexLock lock(mutex_);
    return values_;
  }
  std::vector<ParameterRange> revoked() const {
    MutexLock lock(mutex_);
    return revoked_;
  }
  bool is_abandoned() const {
    MutexLock lock(mutex_);
    return is_abandoned_;
  }

 private:
  mutable Mutex mutex_;
  size_t values_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<ParameterRange> revoked_ ABSL_GUARDED_BY(mutex_);
  bool is_abandoned_ ABSL_GUARDED_BY(mutex_) = false;
};

/// A client and two shards that it talks to in several small chunks.
class ParameterClientTest : public testing::Test {
 protected:
  ParameterClientTest()
      : map_(TwoShards()),
        first_(map_.range(kShard0).size(), map_.fingerprint()),
        second_(map_.range(kShard1).size(), map_.fingerprint()),
        weights_(kParameters),
        gradient_(kParameters) {
    for (size_t i = 0; i < kParameters; ++i) gradient_[i] = static_cast<float>(i) / 16;
  }

  std::unique_ptr<ParameterClient> NewClient(bool in_step = false,
                                             Encoding encoding = Encoding::kFp32) {
    ParameterClient::Options options;
    options.identity = {.run = 5, .worker = WorkerId{1}, .incarnation = Incarnation{2}};
    options.servers = {first_.address(), second_.address()};
    options.map = map_;
    options.in_step = in_step;
    options.group.client.chunk_bytes = 4096;
    options.group.push_encoding = encoding;
    if (RowOf(encoding).carries_weights) options.group.client.weights_encoding = encoding;
    options.group.retry = {.first_wait = absl::Milliseconds(1),
                           .wait_max = absl::Milliseconds(5),
                           .give_up_after = absl::Milliseconds(200)};
    return std::make_unique<ParameterClient>(
        options, std::vector<ParameterClient::Slot>{{weights_, gradient_, &listener_}},
        [](absl::Duration) { return true; }, cancel_);
  }

  /// A client that has pulled and been told of two batches, 7 and 8.
  std::unique_ptr<ParameterClient> NewReadyClient() {
    auto client = NewClient();
    client->OnUnit({.id = 1, .first = 7, .batches = 2});
    client->OnNoMoreUnits();
    EXPECT_TRUE(client->Advance().ok());
    return client;
  }

  /// Pushes a whole gradient and waits until the shards have done what they do.
  static absl::Status Push(ParameterClient& client, uint64_t batch) {
    client.BeginPush(0, {.batch = batch, .examples = 32});
    if (absl::Status status = client.FinishPush(0); !status.ok()) return status;
    return client.Drain();
  }

  std::vector<float> ShardWeights() const {
    std::vector<float> all = first_.weights();
    const std::vector<float> rest = second_.weights();
    all.insert(all.end(), rest.begin(), rest.end());
    return all;
  }

  const ShardMap map_;
  FakeShard first_;
  FakeShard second_;
  CancelSwitch cancel_;
  std::vector<float> weights_;
  std::vector<float> gradient_;
  NotingListener listener_;
};

TEST_F(ParameterClientTest, InitialWeightsArriveOnEveryShardAndComeBack) {
  auto client = NewClient();
  ASSERT_TRUE(client->Initialize(3, gradient_).ok());
  EXPECT_EQ(ShardWeights(), gradient_);

  client->OnUnit({.id = 1, .first = 7, .batches = 1});
  const absl::StatusOr<ParameterClient::Step> step = client->Advance();

  ASSERT_TRUE(step.ok()) << step.status();
  EXPECT_EQ(std::get<ParameterClient::Compute>(*step).batch, 7u);
  EXPECT_EQ(weights_, gradient_);
}

TEST_F(ParameterClientTest, APushBringsTheNextWeightsInTheSameTrip) {
  auto client = NewReadyClient();

  ASSERT_TRUE(Push(*client, 7).ok());

  EXPECT_EQ(weights_, ShardWeights());
  EXPECT_EQ(weights_[160], -10.0f);
  EXPECT_EQ(first_.pulls().size(), 1u);
  const v1::PushHeader header = second_.taken().at(0).header;
  EXPECT_EQ(header.identity().incarnation(), 2u);
  EXPECT_EQ(header.sequence(), 1u);
  EXPECT_EQ(header.base_version(), 0u);
  EXPECT_EQ(header.examples(), 32u);
  EXPECT_EQ(header.batch(), 7u);
}

TEST_F(ParameterClientTest, GradientsAndWeightsTravelAsTheOptionsSay) {
  auto client = NewClient(false, Encoding::kBf16);
  ASSERT_TRUE(client->Initialize(3, std::vector<float>(kParameters, 1.001f)).ok());
  EXPECT_EQ(ShardWeights().front(), 1.001f) << "initial weights are exact";
  client->OnUnit({.id = 1, .first = 7, .batches = 2});
  client->OnNoMoreUnits();
  ASSERT_TRUE(client->Advance().ok());
  EXPECT_EQ(weights_, std::vector<float>(kParameters, 1));  // Between 1 and 2: steps of 1/128.
  std::ranges::fill(gradient_, 1.001f);

  ASSERT_TRUE(Push(*client, 7).ok());

  EXPECT_EQ(first_.taken().at(0).values, std::vector<float>(first_.weights().size(), 1));
  EXPECT_EQ(first_.taken().at(0).offsets.size(), 5u) << "chunks of as many values as of fp32";
  EXPECT_EQ(first_.taken().at(0).header.weights_encoding(), v1::BF16);
  EXPECT_NEAR(weights_.front(), 0.001f, 1e-5f);
}

TEST_F(ParameterClientTest, TheLastPushTakesNoWeights) {
  auto client = NewReadyClient();
  ASSERT_TRUE(Push(*client, 7).ok());
  const std::vector<float> before = weights_;

  ASSERT_TRUE(Push(*client, 8).ok());

  EXPECT_EQ(weights_, before);
  EXPECT_FALSE(first_.taken().at(1).header.pull());
  EXPECT_EQ(first_.taken().at(1).header.sequence(), 2u);
  EXPECT_TRUE(std::holds_alternative<ParameterClient::Finished>(client->Advance().value()));
}

TEST_F(ParameterClientTest, APushWhoseAnswerWasLostGoesOutAgainAndCountsOnce) {
  auto client = NewReadyClient();
  second_.AddFault(FakeShard::Fault::kBreakAfterTaking);
  second_.AddFault(FakeShard::Fault::kBreakBeforeTaking);

  ASSERT_TRUE(Push(*client, 7).ok());
  ASSERT_TRUE(Push(*client, 8).ok());

  EXPECT_EQ(second_.received(), 4);
  ASSERT_EQ(second_.taken().size(), 2u);
  EXPECT_EQ(second_.taken()[0].header.sequence(), 1u);
  EXPECT_EQ(second_.taken()[1].header.sequence(), 2u);
  EXPECT_EQ(second_.version(), first_.version());
}

TEST_F(ParameterClientTest, WhatAPushLosesGoesOutWithTheNextAlsoIfItsAnswerWasLost) {
  auto client = NewClient(false, Encoding::kInt8);
  client->OnUnit({.id = 1, .first = 7, .batches = 2});
  ASSERT_TRUE(client->Advance().ok());
  second_.AddFault(FakeShard::Fault::kBreakAfterTaking);

  ASSERT_TRUE(Push(*client, 7).ok());
  ASSERT_TRUE(Push(*client, 8).ok());

  double worst = 0;  // Of both together, in steps of the last block, which are the largest.
  for (size_t i = 0; i < map_.range(kShard1).size(); ++i) {
    const float sent = second_.taken()[0].values[i] + second_.taken()[1].values[i];
    const float computed = 2 * gradient_[map_.range(kShard1).begin + i];
    worst = std::max<double>(worst, std::abs(sent - computed) / (gradient_.back() / 127));
  }
  EXPECT_LT(worst, 0.51);
}

TEST_F(ParameterClientTest, ABusyShardIsAskedAgainWithTheSamePush) {
  auto client = NewReadyClient();
  for (int i = 0; i < 3; ++i) first_.AddFault(FakeShard::Fault::kRetryLater);

  ASSERT_TRUE(Push(*client, 7).ok());

  EXPECT_EQ(first_.received(), 4);
  EXPECT_EQ(first_.taken().size(), 1u);
  EXPECT_EQ(weights_, ShardWeights());
}

TEST_F(ParameterClientTest, AFencedWorkerFailsForGood) {
  auto client = NewReadyClient();
  second_.RefuseNext(v1::FENCED);

  const absl::Status status = Push(*client, 7);

  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_TRUE(cancel_.thrown());
  EXPECT_TRUE(listener_.is_abandoned());
  EXPECT_EQ(client->Advance().status(), status);
}

TEST_F(ParameterClientTest, ARefusalInOneLaneEndsTheWaitInTheOther) {
  auto client = NewReadyClient();
  first_.AddFault(FakeShard::Fault::kAnswerNever);
  second_.RefuseNext(v1::NONFINITE);

  const absl::Status status = Push(*client, 7);

  EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << status;
  EXPECT_NE(status.message().find("NONFINITE"), absl::string_view::npos) << status;
}

TEST_F(ParameterClientTest, AStaleRefusalLeadsToNewerWeightsUnderTheSameSequence) {
  auto client = NewReadyClient();
  first_.RefuseNext(v1::TOO_STALE);
  ASSERT_TRUE(Push(*client, 7).ok());

  ASSERT_TRUE(client->Advance().ok());
  ASSERT_TRUE(Push(*client, 8).ok());

  EXPECT_EQ(first_.pulls().size(), 2u);
  ASSERT_EQ(first_.taken().size(), 1u);
  EXPECT_EQ(first_.taken()[0].header.sequence(), 1u);
}

TEST_F(ParameterClientTest, AThrownSwitchEndsAWaitingPush) {
  auto client = NewReadyClient();
  first_.AddFault(FakeShard::Fault::kAnswerNever);
  std::thread stopper([this] {
    while (first_.received() == 0) std::this_thread::yield();
    cancel_.Throw();
  });

  const absl::Status status = Push(*client, 7);
  stopper.join();

  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled) << status;
}

TEST_F(ParameterClientTest, AShardOutOfReachIsGivenUpByName) {
  ParameterClient::Options options;
  options.map = map_;
  // Port 1 of this machine is reserved and nothing listens there.
  options.servers = {"127.0.0.1:1", second_.address()};
  options.group.retry = {.first_wait = absl::Milliseconds(1),
                         .wait_max = absl::Milliseconds(5),
                         .give_up_after = absl::Milliseconds(30)};
  ParameterClient client(
      options, {{weights_, gradient_, nullptr}}, [](absl::Duration) { return true; }, cancel_);

  const absl::Status status = client.Initialize(1, gradient_);

  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_NE(status.message().find("127.0.0.1:1"), absl::string_view::npos) << status;
}

// Overlap.

TEST_F(ParameterClientTest, ChunksLeaveAsTheyBecomeFinalAndTheLastOnlyOnceTheStepSucceeded) {
  auto client = NewReadyClient();
  GradientFeed& feed = client->BeginPush(0, {.batch = 7, .examples = 32});

  feed.OnReady({kParameters - 2000, kParameters});

  // Two whole chunks of 1024 values and the part of one at the end of the arena.
  const size_t tail = map_.range(kShard1).size() % 1024;
  while (second_.values_received() < tail + 1024) std::this_thread::yield();
  EXPECT_EQ(first_.values_received(), 0u);
  feed.OnReady({0, kParameters - 2000});
  while (second_.values_received() < map_.range(kShard1).size() - 1024) std::this_thread::yield();
  while (first_.values_received() < map_.range(kShard0).size() - 1024) std::this_thread::yield();
  EXPECT_EQ(first_.received() + second_.received(), 0) << "a push counted before it was finished";
  ASSERT_TRUE(client->FinishPush(0).ok());
  ASSERT_TRUE(client->Drain().ok());

  EXPECT_EQ(first_.taken().at(0).values,
            std::vector<float>(
                gradient_.begin(),
                gradient_.begin() + static_cast<std::ptrdiff_t>(map_.range(kShard0).size())));
  const std::vector<uint64_t> offsets = second_.taken().at(0).offsets;
  EXPECT_TRUE(std::is_sorted(offsets.rbegin(), offsets.rend()));
  EXPECT_EQ(weights_, ShardWeights());
  EXPECT_EQ(listener_.values(), 2 * kParameters);  // Of the first pull, too.
}

TEST_F(ParameterClientTest, AnAbortedPushHasNoEffectAndItsSequenceIsUsedByTheNext) {
  auto client = NewReadyClient();
  GradientFeed& feed = client->BeginPush(0, {.batch = 7, .examples = 32});
  feed.OnReady({0, kParameters});
  while (second_.values_received() < map_.range(kShard1).size() - 1024) std::this_thread::yield();

  client->AbortPush(0);

  ASSERT_EQ(std::get<ParameterClient::Compute>(client->Advance().value()).batch, 7u);
  ASSERT_TRUE(Push(*client, 7).ok());
  for (const FakeShard* shard : {&first_, &second_}) {
    ASSERT_EQ(shard->taken().size(), 1u);
    EXPECT_EQ(shard->taken()[0].header.sequence(), 1u);
    EXPECT_EQ(shard->version(), 1u);
  }
}

// As when what computes the step throws.
TEST_F(ParameterClientTest, APushThatNobodyEndsIsGivenUpWithTheClient) {
  {
    auto client = NewReadyClient();
    client->BeginPush(0, {.batch = 7, .examples = 32}).OnReady({kParameters - 2000, kParameters});
  }

  EXPECT_EQ(first_.received() + second_.received(), 0);
}

TEST_F(ParameterClientTest, WeightsOfTheSameVersionContinueWhereTheyBrokeOff) {
  auto client = NewReadyClient();
  second_.AddFault(FakeShard::Fault::kBreakWithinWeights);

  ASSERT_TRUE(Push(*client, 7).ok());

  EXPECT_EQ(second_.received(), 2);
  EXPECT_EQ(second_.taken().size(), 1u);
  EXPECT_EQ(weights_, ShardWeights());
  EXPECT_EQ(listener_.values(), 2 * kParameters) << "no value is told, or written, twice";
  EXPECT_TRUE(listener_.revoked().empty());
  EXPECT_TRUE(client->Advance().ok());
}

TEST_F(ParameterClientTest, WeightsOfANewerVersionReplaceThoseThatBrokeOff) {
  auto client = NewReadyClient();
  second_.AddFault(FakeShard::Fault::kMoveOnWithinWeights);

  ASSERT_TRUE(Push(*client, 7).ok());

  EXPECT_EQ(listener_.revoked(), std::vector<ParameterRange>{map_.range(kShard1)});
  EXPECT_EQ(weights_, ShardWeights());
  ASSERT_EQ(std::get<ParameterClient::Compute>(client->Advance().value()).batch, 8u);
  ASSERT_TRUE(Push(*client, 8).ok());
  EXPECT_EQ(second_.taken().at(1).header.base_version(), 2u);
  EXPECT_EQ(first_.taken().at(1).header.base_version(), 1u);
}

TEST_F(ParameterClientTest, ARefusalWhereTheRestOfTheWeightsWasAskedForFailsAndEndsTheWait) {
  auto client = NewReadyClient();
  second_.AddFault(FakeShard::Fault::kFenceWithinWeights);

  const absl::Status status = Push(*client, 7);

  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_EQ(second_.received(), 2);
  EXPECT_TRUE(listener_.is_abandoned());
}

TEST_F(ParameterClientTest, AdvanceNamesTheNextBatchWhileWeightsStillArrive) {
  auto client = NewReadyClient();
  second_.AddFault(FakeShard::Fault::kPauseWithinWeights);
  client->BeginPush(0, {.batch = 7, .examples = 32, .step = 3});
  ASSERT_TRUE(client->FinishPush(0).ok());

  EXPECT_EQ(std::get<ParameterClient::Compute>(client->Advance().value()).batch, 8u);
  EXPECT_LT(listener_.values(), 2 * kParameters);

  second_.GoOn();
  ASSERT_TRUE(client->Drain().ok());
  EXPECT_EQ(listener_.values(), 2 * kParameters);
  const std::vector<ParameterClient::Transfer> transfers = client->TakeTransfers();
  ASSERT_EQ(transfers.size(), 1u);
  EXPECT_EQ(transfers[0].step, 3u);
  for (const LaneTimes& lane : transfers[0].lanes) {
    EXPECT_LE(lane.push_begin, lane.push_end);
    EXPECT_LE(lane.push_end, lane.answered);
    EXPECT_LE(lane.answered, lane.end);
    EXPECT_GT(lane.busy, absl::ZeroDuration());
  }
}

TEST_F(ParameterClientTest, TwoSlotsPushInTurnEachAsTheVersionItHolds) {
  std::vector<float> other_weights(kParameters);
  ParameterClient::Options options;
  options.identity = {.run = 5, .worker = WorkerId{1}, .incarnation = Incarnation{2}};
  options.servers = {first_.address(), second_.address()};
  options.map = map_;
  options.group.client.chunk_bytes = 4096;
  ParameterClient client(
      options, {{weights_, gradient_, &listener_}, {other_weights, gradient_, &listener_}},
      [](absl::Duration) { return true; }, cancel_);
  client.OnUnit({.id = 1, .first = 0, .batches = 6});
  client.OnNoMoreUnits();

  for (uint32_t slot : {0u, 1u}) ASSERT_TRUE(client.Advance(slot).ok());
  for (uint64_t batch = 0; batch < 6; ++batch) {
    const uint32_t slot = batch % 2;
    const absl::StatusOr<ParameterClient::Step> step = client.Advance(slot);
    ASSERT_TRUE(step.ok()) << step.status();
    ASSERT_EQ(std::get<ParameterClient::Compute>(*step).batch, batch);
    client.BeginPush(slot, {.batch = batch, .examples = 32});
    ASSERT_TRUE(client.FinishPush(slot).ok());
  }
  ASSERT_TRUE(std::holds_alternative<ParameterClient::Finished>(client.Advance(0).value()));
  ASSERT_TRUE(client.Drain().ok());

  const std::vector<v1::PullRequest> pulls = second_.pulls();
  ASSERT_EQ(pulls.size(), 2u);
  for (uint32_t slot : {0u, 1u}) {
    EXPECT_EQ(pulls[slot].slot(), slot);
    EXPECT_EQ(pulls[slot].sequence(), 1u);
  }
  const std::vector<FakeShard::Push> taken = second_.taken();
  ASSERT_EQ(taken.size(), 6u);
  for (uint64_t i = 0; i < 6; ++i) {
    EXPECT_EQ(taken[i].header.sequence(), i + 1);
    EXPECT_EQ(taken[i].header.slot(), i % 2);
    // Two under way: of each, the one before is in its base version only from the third on.
    EXPECT_EQ(taken[i].header.base_version(), i < 2 ? 0 : i - 1);
    EXPECT_EQ(taken[i].header.pull(), i < 4);
  }
}

v1::RoundWork Work(v1::RoundWork::Kind kind, uint64_t batch = 0) {
  v1::RoundWork work;
  work.set_kind(kind);
  work.set_batch(batch);
  return work;
}

TEST_F(ParameterClientTest, UnderRoundsItFollowsTheWorkOfShardZero) {
  first_.NameWork([](uint64_t version) {
    if (version == 0) return Work(v1::RoundWork::COMPUTE, 4);
    return Work(version == 1 ? v1::RoundWork::EXCUSED : v1::RoundWork::FINISHED);
  });
  auto client = NewClient(/*in_step=*/true);
  const absl::StatusOr<ParameterClient::Step> step = client->Advance();
  ASSERT_TRUE(step.ok()) << step.status();
  ASSERT_EQ(std::get<ParameterClient::Compute>(*step).batch, 4u);
  ASSERT_TRUE(Push(*client, 4).ok());

  const absl::StatusOr<ParameterClient::Step> end = client->Advance();

  EXPECT_TRUE(std::holds_alternative<ParameterClient::Finished>(end.value()));
  ASSERT_EQ(second_.taken().size(), 2u);
  EXPECT_EQ(second_.taken()[1].header.count(), 0u);
  EXPECT_EQ(second_.taken()[1].header.examples(), 0u);
  EXPECT_EQ(second_.taken()[1].header.base_version(), 1u);
}

TEST_F(ParameterClientTest, UnderRoundsItBringsShardsLevelThatItFoundApart) {
  first_.NameWork([](uint64_t version) { return Work(v1::RoundWork::COMPUTE, 100 + version); });
  first_.SetVersion(10);
  second_.SetVersion(9);
  auto client = NewClient(/*in_step=*/true);

  const absl::StatusOr<ParameterClient::Step> step = client->Advance();

  ASSERT_TRUE(step.ok()) << step.status();
  EXPECT_EQ(std::get<ParameterClient::Compute>(*step).batch, 110u);
  EXPECT_EQ(second_.version(), 10u);
  EXPECT_EQ(first_.received(), 0);
}

}  // namespace
}  // namespace slipstream
