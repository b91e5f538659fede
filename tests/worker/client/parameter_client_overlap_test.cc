#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <thread>
#include <vector>

#include "tests/worker/client/parameter_client_fixture.h"
#include "worker/client/parameter_client.h"

// Tests of pushes that leave, and of weights that arrive, while the caller computes.

namespace slipstream {
namespace {

using ParameterClientOverlapTest = ParameterClientTest;

TEST_F(ParameterClientOverlapTest, ChunksLeaveAsTheyBecomeFinalAndTheLastOnlyOnceTheStepSucceeded) {
  auto client = NewReadyClient();
  GradientFeed& feed = client->BeginPush(0, {.batches = {{7}}, .examples = 32});

  feed.OnReady({kParameters - 2000, kParameters});

  // One whole chunk of 1024 values, and the partial chunk at the end of the arena.
  const size_t tail = map_.range(kShard1).size() % 1024;
  while (second_.values_received() < tail + 1024) std::this_thread::yield();
  EXPECT_EQ(first_.values_received(), 0u);
  feed.OnReady({0, kParameters - 2000});
  while (second_.values_received() < map_.range(kShard1).size() - 1024) std::this_thread::yield();
  while (first_.values_received() < map_.range(kShard0).size() - 1024) std::this_thread::yield();
  EXPECT_EQ(first_.received() + second_.received(), 0) << "a push counted before it was finished";
  ASSERT_TRUE(client->FinishPush(0, 0.5f).ok());
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
  feed.OnReady({0, kParameters});
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
        .OnReady({kParameters - 2000, kParameters});
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
  ASSERT_TRUE(client->FinishPush(0, 0.5f).ok());

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
  client.OnUnit({.id = 1, .first = 0, .batches = 6});
  client.OnNoMoreUnits();

  for (uint32_t slot : {0u, 1u}) ASSERT_TRUE(client.Advance(slot).ok());
  for (uint64_t batch = 0; batch < 6; ++batch) {
    const uint32_t slot = batch % 2;
    const absl::StatusOr<ParameterClient::Step> step = client.Advance(slot);
    ASSERT_TRUE(step.ok()) << step.status();
    ASSERT_EQ(std::get<ParameterClient::Compute>(*step).batches, (BatchRanges{{batch}}));
    client.BeginPush(slot, {.batches = {{batch}}, .examples = 32});
    ASSERT_TRUE(client.FinishPush(slot, 0.5f).ok());
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
