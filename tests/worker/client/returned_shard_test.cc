#include <gtest/gtest.h>

#include <memory>
#include <variant>
#include <vector>

#include "tests/worker/client/parameter_client_fixture.h"
#include "worker/client/parameter_client.h"

// Tests of a client whose shards go on from an older state, in a new generation.

namespace slipstream {
namespace {

class ReturnedShardTest : public ParameterClientTest {
 protected:
  /// Returns a client that has pulled, and pushed the first of its batches, which begin at 7.
  std::unique_ptr<ParameterClient> AfterOnePush() {
    auto client = NewClient();
    EXPECT_TRUE(client->OnNews(WorkUnit{.id = 1, .first = 7, .batches = 9}).ok());
    EXPECT_TRUE(client->Advance().ok());
    EXPECT_TRUE(Push(*client, 7).ok());
    return client;
  }

  static BatchRanges NextBatches(ParameterClient& client) {
    const absl::StatusOr<ParameterClient::Step> step = client.Advance();
    EXPECT_TRUE(step.ok()) << step.status();
    const auto* compute = step.ok() ? std::get_if<ParameterClient::Compute>(&*step) : nullptr;
    return compute == nullptr ? BatchRanges{} : compute->batches;
  }
};

TEST_F(ReturnedShardTest, IsPulledFromAfterItsRefusalAndCountsPushesFromOneAgain) {
  auto client = AfterOnePush();
  second_.ReturnTo(0);
  ASSERT_EQ(NextBatches(*client), (BatchRanges{{8u}}));

  ASSERT_TRUE(Push(*client, 8).ok());

  EXPECT_EQ(NextBatches(*client), (BatchRanges{{9u}})) << "the other shard counts batch 8";
  EXPECT_EQ(weights_, ShardWeights());
  ASSERT_TRUE(Push(*client, 9).ok());
  const v1::PushHeader header = second_.taken().back().header;
  EXPECT_EQ(header.generation(), 1u);
  EXPECT_EQ(header.sequence(), 1u);
  EXPECT_EQ(header.base_version(), 0u);
  EXPECT_EQ(first_.taken().back().header.sequence(), 3u);
}

TEST_F(ReturnedShardTest, BatchesThatNoShardCountsAreNamedAgain) {
  auto client = AfterOnePush();
  first_.ReturnTo(0);
  second_.ReturnTo(0);
  ASSERT_EQ(NextBatches(*client), (BatchRanges{{8u}}));

  ASSERT_TRUE(Push(*client, 8).ok());

  EXPECT_EQ(NextBatches(*client), (BatchRanges{{8u}}));
  EXPECT_EQ(weights_, ShardWeights());
}

TEST_F(ReturnedShardTest, IsWaitedForWhileItIsAwayAndWhileItHasNoWeights) {
  auto client = AfterOnePush();
  ASSERT_EQ(NextBatches(*client), (BatchRanges{{8u}}));
  using Fault = FakeShard::Fault;
  for (const Fault fault : {Fault::kBreakBeforeTaking, Fault::kBreakBeforeTaking,
                            Fault::kRetryLater, Fault::kRetryLater}) {
    second_.AddFault(fault);
  }
  second_.ReturnTo(0);

  ASSERT_TRUE(Push(*client, 8).ok());

  EXPECT_EQ(NextBatches(*client), (BatchRanges{{9u}}));
  EXPECT_EQ(weights_, ShardWeights());
}

TEST_F(ReturnedShardTest, RevokesWeightsThatBrokeOffWithItsGeneration) {
  auto client = AfterOnePush();
  ASSERT_EQ(NextBatches(*client), (BatchRanges{{8u}}));
  second_.AddFault(FakeShard::Fault::kReturnWithinWeights);

  ASSERT_TRUE(Push(*client, 8).ok());

  EXPECT_EQ(listener_.revoked(), std::vector<ParameterRange>{map_.range(kShard1)});
  EXPECT_EQ(NextBatches(*client), (BatchRanges{{9u}}));
  EXPECT_EQ(weights_, ShardWeights());
  ASSERT_TRUE(Push(*client, 9).ok());
  EXPECT_EQ(second_.taken().back().header.sequence(), 1u);
}

}  // namespace
}  // namespace slipstream
