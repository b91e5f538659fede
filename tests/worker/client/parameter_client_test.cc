#include "worker/client/parameter_client.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <thread>
#include <vector>

#include "tests/worker/client/parameter_client_fixture.h"

// Tests of the requests to shards, of the effects of their answers and failures, and of pushes that
// leave and weights that arrive while the caller computes.

namespace slipstream {
namespace {

TEST_F(ParameterClientTest, InitialWeightsArriveOnEveryShardAndComeBack) {
  auto client = NewClient();
  ASSERT_TRUE(client->Initialize(3, gradient_).ok());
  EXPECT_EQ(ShardWeights(), gradient_);

  EXPECT_TRUE(client->OnNews(WorkUnit{.id = 1, .first = 7, .batches = 1}).ok());
  const absl::StatusOr<ParameterClient::Step> step = client->Advance();

  ASSERT_TRUE(step.ok()) << step.status();
  EXPECT_EQ(std::get<ParameterClient::Compute>(*step).batches, (BatchRanges{{7u}}));
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
  EXPECT_EQ(header.batches(0).first(), 7u);
}

TEST_F(ParameterClientTest, GradientsAndWeightsTravelAsTheOptionsSay) {
  auto client = NewClient(false, Encoding::kBf16);
  ASSERT_TRUE(client->Initialize(3, std::vector<float>(kParameters, 1.001f)).ok());
  EXPECT_EQ(ShardWeights().front(), 1.001f) << "initial weights are exact";
  EXPECT_TRUE(client->OnNews(WorkUnit{.id = 1, .first = 7, .batches = 2}).ok());
  EXPECT_TRUE(client->OnNews(NoMoreUnits{}).ok());
  ASSERT_TRUE(client->Advance().ok());
  EXPECT_EQ(weights_, std::vector<float>(kParameters, 1));  // bf16 has steps of 1/128 there.
  std::ranges::fill(gradient_, 1.001f);

  ASSERT_TRUE(Push(*client, 7).ok());

  EXPECT_EQ(first_.taken().at(0).values, std::vector<float>(first_.weights().size(), 1));
  EXPECT_EQ(first_.taken().at(0).offsets.size(), 6u)
      << "the header, and chunks of as many values as of fp32";
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
  EXPECT_TRUE(client->OnNews(WorkUnit{.id = 1, .first = 7, .batches = 2}).ok());
  ASSERT_TRUE(client->Advance().ok());
  second_.AddFault(FakeShard::Fault::kBreakAfterTaking);

  ASSERT_TRUE(Push(*client, 7).ok());
  ASSERT_TRUE(Push(*client, 8).ok());

  double worst = 0;  // The error of the sum, in steps of the last block (the largest).
  for (size_t i = 0; i < map_.range(kShard1).size(); ++i) {
    const float sent = second_.taken()[0].values[i] + second_.taken()[1].values[i];
    const float computed = 2 * gradient_[map_.range(kShard1).begin + i];
    worst = std::max<double>(worst, std::abs(sent - computed) / (gradient_.back() / 127));
  }
  EXPECT_LT(worst, 0.51);
}

TEST_F(ParameterClientTest, LargeGradientsOfAFrozenTensorCostTheirNeighboursNothing) {
  frozen_ = {{{100, 200}}, {}};
  auto client = NewClient(false, Encoding::kInt8);
  EXPECT_TRUE(client->OnNews(WorkUnit{.id = 1, .first = 7, .batches = 1}).ok());
  ASSERT_TRUE(client->Advance().ok());
  std::ranges::fill(gradient_, 0.001f);
  std::fill_n(gradient_.begin() + 100, 100, 1e6f);

  ASSERT_TRUE(Push(*client, 7).ok());

  std::vector<float> expected(first_.weights().size(), 0.001f);
  std::fill_n(expected.begin() + 100, 100, 0.0f);
  const std::vector<float> sent = first_.taken().at(0).values;
  ASSERT_EQ(sent.size(), expected.size());
  for (size_t i = 0; i < sent.size(); ++i) ASSERT_FLOAT_EQ(sent[i], expected[i]) << i;
  EXPECT_EQ(gradient_[150], 1e6f) << "the norm that is clipped is that of the whole gradient";
}

/// Two tensors of 100 values each, of which the second is frozen, on two shards.
PushEncoders::Frozen FrozenIn(RunSpec run) {
  run.optimizer.per_tensor = {{.match = "back", .learning_rate_factor = 0}};
  TensorLayout layout;
  EXPECT_TRUE(layout.Append("head", {100}).ok());
  EXPECT_TRUE(layout.Append("back", {100}).ok());
  const ShardMap map = ShardMap::FromRanges(layout, {{0, 50}, {50, 200}}).value();
  return ParameterClient::Options::For(run, {}, layout, map, {}).frozen;
}

TEST(ParameterClientOptionsTest, ValuesAreFrozenAsTheServersFreezeThem) {
  const PushEncoders::Frozen back = {{}, {{50, 150}}};
  for (const AlgorithmKind algorithm :
       {AlgorithmKind::kGradient, AlgorithmKind::kDownpour, AlgorithmKind::kLocalSgd}) {
    RunSpec run;
    run.worker.algorithm = algorithm;
    EXPECT_EQ(FrozenIn(run), back) << RowOf(algorithm).name;
  }
  RunSpec pushes_weights;
  pushes_weights.consistency.policy = PolicyKind::kAllReduce;
  EXPECT_EQ(FrozenIn(pushes_weights), PushEncoders::Frozen(2));
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
  // Port 1 of this machine is reserved, and no process listens there.
  options.servers = {"127.0.0.1:1", second_.address()};
  options.shards.retry = {.first_wait = absl::Milliseconds(1),
                          .wait_max = absl::Milliseconds(5),
                          .give_up_after = absl::Milliseconds(30)};
  ParameterClient client(
      options, {{weights_, gradient_, nullptr}}, [](absl::Duration) { return true; }, cancel_);

  const absl::Status status = client.Initialize(1, gradient_);

  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_NE(status.message().find("127.0.0.1:1"), absl::string_view::npos) << status;
}

v1::RoundWork Work(v1::RoundWork::Kind kind, uint64_t batch = 0) {
  v1::RoundWork work;
  work.set_kind(kind);
  if (kind != v1::RoundWork::COMPUTE) return work;
  work.mutable_batches()->set_first(batch);
  work.mutable_batches()->set_count(1);
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
  ASSERT_EQ(std::get<ParameterClient::Compute>(*step).batches, (BatchRanges{{4u}}));
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
  EXPECT_EQ(std::get<ParameterClient::Compute>(*step).batches, (BatchRanges{{110u}}));
  EXPECT_EQ(second_.version(), 10u);
  EXPECT_EQ(first_.received(), 0);
}

}  // namespace

namespace {

using ParameterClientOverlapTest = ParameterClientTest;

TEST_F(ParameterClientOverlapTest, ChunksLeaveAsTheyBecomeFinalAndTheLastOnlyOnceTheStepSucceeded) {
  auto client = NewReadyClient();
  GradientFeed& feed = client->BeginPush(0, {.batches = {{7}}, .examples = 32});

  feed.OnGradientReady({kParameters - 2000, kParameters});

  // One whole chunk of 1024 values, and the partial chunk at the end of the arena.
  const size_t tail = map_.range(kShard1).size() % 1024;
  while (second_.values_received() < tail + 1024) std::this_thread::yield();
  EXPECT_EQ(first_.values_received(), 0u);
  feed.OnGradientReady({0, kParameters - 2000});
  while (second_.values_received() < map_.range(kShard1).size() - 1024) std::this_thread::yield();
  while (first_.values_received() < map_.range(kShard0).size() - 1024) std::this_thread::yield();
  EXPECT_EQ(first_.received() + second_.received(), 0) << "a push counted before it was finished";
  ASSERT_TRUE(client->FinishPush(0, {.loss = 0.5f}).ok());
  ASSERT_TRUE(client->Drain().ok());

  EXPECT_EQ(first_.taken().at(0).values,
            std::vector<float>(
                gradient_.begin(),
                gradient_.begin() + static_cast<std::ptrdiff_t>(map_.range(kShard0).size())));
  const std::vector<uint64_t> offsets = second_.taken().at(0).offsets;
  EXPECT_TRUE(std::is_sorted(offsets.rbegin(), offsets.rend()));
  EXPECT_EQ(weights_, ShardWeights());
  EXPECT_EQ(listener_.values(), 2 * kParameters);  // Includes the first pull.
}

TEST_F(ParameterClientOverlapTest, AnAbortedPushHasNoEffectAndItsSequenceIsUsedByTheNext) {
  auto client = NewReadyClient();
  GradientFeed& feed = client->BeginPush(0, {.batches = {{7}}, .examples = 32});
  feed.OnGradientReady({0, kParameters});
  while (second_.values_received() < map_.range(kShard1).size() - 1024) std::this_thread::yield();

  client->AbortPush(0);

  ASSERT_EQ(std::get<ParameterClient::Compute>(client->Advance().value()).batches,
            (BatchRanges{{7u}}));
  ASSERT_TRUE(Push(*client, 7).ok());
  for (const FakeShard* shard : {&first_, &second_}) {
    ASSERT_EQ(shard->taken().size(), 1u);
    EXPECT_EQ(shard->taken()[0].header.sequence(), 1u);
    EXPECT_EQ(shard->version(), 1u);
  }
}

// This happens if the code that computes the step throws.
TEST_F(ParameterClientOverlapTest, APushThatNobodyEndsIsGivenUpWithTheClient) {
  {
    auto client = NewReadyClient();
    client->BeginPush(0, {.batches = {{7}}, .examples = 32})
        .OnGradientReady({kParameters - 2000, kParameters});
  }

  EXPECT_EQ(first_.received() + second_.received(), 0);
}

TEST_F(ParameterClientOverlapTest, WeightsOfTheSameVersionContinueWhereTheyBrokeOff) {
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

TEST_F(ParameterClientOverlapTest, APullThatBringsANewerVersionRevokesTheValuesThatItOverwrites) {
  second_.MoveOnWithinPull();

  auto client = NewReadyClient();

  EXPECT_EQ(listener_.revoked(), std::vector<ParameterRange>{map_.range(kShard1)});
  EXPECT_EQ(weights_, ShardWeights());
}

TEST_F(ParameterClientOverlapTest, WeightsOfANewerVersionReplaceThoseThatBrokeOff) {
  auto client = NewReadyClient();
  second_.AddFault(FakeShard::Fault::kMoveOnWithinWeights);

  ASSERT_TRUE(Push(*client, 7).ok());

  EXPECT_EQ(listener_.revoked(), std::vector<ParameterRange>{map_.range(kShard1)});
  EXPECT_EQ(weights_, ShardWeights());
  ASSERT_EQ(std::get<ParameterClient::Compute>(client->Advance().value()).batches,
            (BatchRanges{{8u}}));
  ASSERT_TRUE(Push(*client, 8).ok());
  EXPECT_EQ(second_.taken().at(1).header.base_version(), 2u);
  EXPECT_EQ(first_.taken().at(1).header.base_version(), 1u);
}

TEST_F(ParameterClientOverlapTest, ARefusalWhereTheRestOfTheWeightsWasAskedForFailsAndEndsTheWait) {
  auto client = NewReadyClient();
  second_.AddFault(FakeShard::Fault::kFenceWithinWeights);

  const absl::Status status = Push(*client, 7);

  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_EQ(second_.received(), 2);
  EXPECT_TRUE(listener_.is_abandoned());
}

TEST_F(ParameterClientOverlapTest, AdvanceNamesTheNextBatchWhileWeightsStillArrive) {
  auto client = NewReadyClient();
  second_.AddFault(FakeShard::Fault::kPauseWithinWeights);
  client->BeginPush(0, {.batches = {{7}}, .examples = 32, .step = 3});
  ASSERT_TRUE(client->FinishPush(0, {.loss = 0.5f}).ok());

  EXPECT_EQ(std::get<ParameterClient::Compute>(client->Advance().value()).batches,
            (BatchRanges{{8u}}));
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

TEST_F(ParameterClientOverlapTest, TwoSlotsPushInTurnEachAsTheVersionItHolds) {
  std::vector<float> other_weights(kParameters);
  ParameterClient::Options options;
  options.identity = {.run = 5, .worker = WorkerId{1}, .incarnation = Incarnation{2}};
  options.servers = {first_.address(), second_.address()};
  options.map = map_;
  options.shards.chunk_bytes = 4096;
  ParameterClient client(
      options, {{weights_, gradient_, &listener_}, {other_weights, gradient_, &listener_}},
      [](absl::Duration) { return true; }, cancel_);
  EXPECT_TRUE(client.OnNews(WorkUnit{.id = 1, .first = 0, .batches = 6}).ok());
  EXPECT_TRUE(client.OnNews(NoMoreUnits{}).ok());

  for (uint32_t slot : {0u, 1u}) ASSERT_TRUE(client.Advance(slot).ok());
  for (uint64_t batch = 0; batch < 6; ++batch) {
    const uint32_t slot = batch % 2;
    const absl::StatusOr<ParameterClient::Step> step = client.Advance(slot);
    ASSERT_TRUE(step.ok()) << step.status();
    ASSERT_EQ(std::get<ParameterClient::Compute>(*step).batches, (BatchRanges{{batch}}));
    client.BeginPush(slot, {.batches = {{batch}}, .examples = 32});
    ASSERT_TRUE(client.FinishPush(slot, {.loss = 0.5f}).ok());
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
    // Two gradients are in flight. From the third push on, a slot's base version is the one that
    // its own previous push made.
    EXPECT_EQ(taken[i].header.base_version(), i < 2 ? 0 : i - 1);
    EXPECT_EQ(taken[i].header.pull(), i < 4);
  }
}

}  // namespace

}  // namespace slipstream
