#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <variant>
#include <vector>

#include "tests/support/captured_log.h"
#include "tests/worker/client/parameter_client_fixture.h"
#include "worker/client/parameter_client.h"

// Tests of a client one of whose shards comes back at another address, in a new generation.

namespace slipstream {
namespace {

class MovedServerTest : public ParameterClientTest {
 protected:
  MovedServerTest() : elsewhere_(map_.range(kShard1).size(), map_.fingerprint()) {
    addresses_.Note({first_.address(), second_.address()});
    elsewhere_.ReturnTo(0);
    client_ = NewClient();
    EXPECT_TRUE(client_->OnNews(WorkUnit{.id = 1, .first = 7, .batches = 9}).ok());
    EXPECT_EQ(NextBatches(), (BatchRanges{{7u}}));
    EXPECT_TRUE(Push(*client_, 7).ok());
    EXPECT_EQ(NextBatches(), (BatchRanges{{8u}}));
  }

  BatchRanges NextBatches() {
    const absl::StatusOr<ParameterClient::Step> step = client_->Advance();
    EXPECT_TRUE(step.ok()) << step.status();
    const auto* compute = step.ok() ? std::get_if<ParameterClient::Compute>(&*step) : nullptr;
    return compute == nullptr ? BatchRanges{} : compute->batches;
  }

  void NoteMove() { addresses_.Note(kShard1, elsewhere_.address()); }

  /// Expects that the client has its weights from the new address, and pushes there.
  void ExpectGoesOnElsewhere() {
    EXPECT_EQ(NextBatches(), (BatchRanges{{9u}})) << "the other shard counts batch 8";
    std::vector<float> all = first_.weights();
    const std::vector<float> rest = elsewhere_.weights();
    all.insert(all.end(), rest.begin(), rest.end());
    EXPECT_EQ(weights_, all);
    EXPECT_TRUE(Push(*client_, 9).ok());
    ASSERT_EQ(elsewhere_.taken().size(), 1u);
    EXPECT_EQ(elsewhere_.taken()[0].header.generation(), 1u);
    EXPECT_EQ(elsewhere_.taken()[0].header.sequence(), 1u);
    EXPECT_EQ(first_.taken().size(), 3u);
    EXPECT_EQ(second_.taken().size(), 1u);
  }

  CapturedLog log_;  // Outlives the threads of the client.
  FakeShard elsewhere_;
  std::unique_ptr<ParameterClient> client_;
};

TEST_F(MovedServerTest, IsFoundWhereItIsNow) {
  second_.Stop();
  NoteMove();

  ASSERT_TRUE(Push(*client_, 8).ok());

  ExpectGoesOnElsewhere();
  EXPECT_EQ(
      log_.Count("server moved shard=1 from=" + second_.address() + " to=" + elsewhere_.address()),
      1);
}

TEST_F(MovedServerTest, IsFoundByAPushThatIsRepeatedWhenTheNewsCome) {
  second_.Stop();
  std::future<absl::Status> pushed =
      std::async(std::launch::async, [this] { return Push(*client_, 8); });
  log_.WaitFor("waiting until it is ready peer=\"shard 1 at " + second_.address());

  NoteMove();

  const absl::Status status = pushed.get();
  ASSERT_TRUE(status.ok()) << status;
  ExpectGoesOnElsewhere();
  EXPECT_EQ(log_.Count("answers again peer=\"shard 1 at " + elsewhere_.address()), 1);
}

// A process that was replaced may live on without the coordinator, as if the network is cut between
// them. What it takes is lost.
TEST_F(MovedServerTest, IsLeftAtItsOldAddressThoughAProcessAnswersThere) {
  NoteMove();

  ASSERT_TRUE(Push(*client_, 8).ok());

  ExpectGoesOnElsewhere();
  EXPECT_EQ(second_.received(), 1);
}

}  // namespace
}  // namespace slipstream
