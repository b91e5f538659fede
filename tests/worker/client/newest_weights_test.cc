#include "worker/client/newest_weights.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "common/process/steady_time.h"
#include "tests/worker/client/parameter_client_fixture.h"

// Tests of the lanes that follow two shards' versions.

namespace slipstream {
namespace {

constexpr absl::Duration kDeadline = absl::Seconds(20);

class NewestWeightsTest : public ParameterClientTest {
 protected:
  NewestWeightsTest() { newest_ = New(first_.address(), absl::Seconds(20)); }

  /// Follows the first shard through an aggregator at this address.
  void Follow(const std::string& aggregator) {
    newest_ = New(first_.address(), absl::Seconds(20), {aggregator, ""});
  }

  std::unique_ptr<NewestWeights> New(const std::string& first, absl::Duration give_up_after,
                                     const std::vector<std::string>& aggregators = {}) {
    ShardOptions options;
    options.chunk_bytes = 4096;
    options.retry = {.first_wait = absl::Milliseconds(1),
                     .wait_max = absl::Milliseconds(5),
                     .give_up_after = give_up_after};
    return std::make_unique<NewestWeights>(
        Identity{.run = 5, .worker = WorkerId{1}, .incarnation = Incarnation{2}},
        std::vector<std::string>{first, second_.address()}, map_, options,
        [](absl::Duration) { return true; }, cancel_, aggregators);
  }

  /// Takes until versions `first` and `second` have come, or there is a failure.
  absl::Status TakeUntil(uint64_t first, uint64_t second) {
    const absl::Time deadline = SteadyNow() + kDeadline;
    while (held_[0]->second < Version{first} || held_[1]->second < Version{second}) {
      const auto taken = newest_->Take(held_, weights_);
      if (!taken.ok()) return taken.status();
      for (const NewestWeights::Taken& part : *taken) {
        held_[Value(part.shard)] = {part.header.generation, part.header.version};
      }
      if (SteadyNow() > deadline) return absl::DeadlineExceededError("they did not come");
      std::this_thread::yield();
    }
    return absl::OkStatus();
  }

  static bool Becomes(const std::function<bool()>& condition) {
    const absl::Time deadline = SteadyNow() + kDeadline;
    while (!condition() && SteadyNow() < deadline) std::this_thread::yield();
    return condition();
  }

  std::vector<std::optional<NewestWeights::Held>> held_{NewestWeights::Held(),
                                                        NewestWeights::Held()};
  std::unique_ptr<NewestWeights> newest_;
};

TEST_F(NewestWeightsTest, TakesTheNewestOfEachShardWhateverTheOtherHas) {
  ASSERT_TRUE(NewClient()->Initialize(3, gradient_).ok());
  first_.SetVersion(2);

  ASSERT_TRUE(TakeUntil(2, 0).ok());

  for (size_t i = 0; i < map_.range(kShard0).size(); ++i) ASSERT_EQ(weights_[i], gradient_[i]);
  EXPECT_EQ(weights_.back(), 0) << "version 0 is held";
  second_.SetVersion(7);
  ASSERT_TRUE(TakeUntil(2, 7).ok());
  EXPECT_EQ(weights_, gradient_);
}

TEST_F(NewestWeightsTest, WaitsForTheFirstOfAShardOfWhichNoneAreHeld) {
  ASSERT_TRUE(NewClient()->Initialize(3, gradient_).ok());
  held_[0].reset();

  const auto taken = newest_->Take(held_, weights_);

  ASSERT_TRUE(taken.ok()) << taken.status();
  ASSERT_EQ(taken->size(), 1u);
  EXPECT_EQ(taken->front().shard, kShard0);
  EXPECT_EQ(taken->front().header.version, Version{0});
  for (size_t i = 0; i < map_.range(kShard0).size(); ++i) ASSERT_EQ(weights_[i], gradient_[i]);
}

TEST_F(NewestWeightsTest, LeavesWeightsThatAreAsNew) {
  first_.SetVersion(3);
  second_.SetVersion(3);
  ASSERT_TRUE(TakeUntil(3, 3).ok());
  weights_.assign(kParameters, -1);

  const auto taken = newest_->Take(held_, weights_);

  ASSERT_TRUE(taken.ok()) << taken.status();
  EXPECT_TRUE(taken->empty());
  EXPECT_EQ(weights_, std::vector<float>(kParameters, -1));
}

TEST_F(NewestWeightsTest, AsksAsAMemberThatDoesNotTrainForVersionsNewerThanItsLast) {
  first_.SetVersion(4);
  ASSERT_TRUE(TakeUntil(4, 0).ok());

  ASSERT_TRUE(Becomes([&] { return first_.pulls().size() >= 2; }));

  const std::vector<v1::PullRequest> pulls = first_.pulls();
  EXPECT_EQ(pulls.size(), 2u) << "it waits at the shard";
  EXPECT_EQ(pulls[0].min_version(), 0u);
  EXPECT_EQ(pulls[1].min_version(), 5u);
  for (const v1::PullRequest& pull : pulls) {
    EXPECT_FALSE(pull.trains());
    EXPECT_EQ(pull.identity().incarnation(), 2u);
  }
}

TEST_F(NewestWeightsTest, AShardInALaterGenerationHasNewerWeightsWhateverTheirVersion) {
  first_.SetVersion(4);
  ASSERT_TRUE(TakeUntil(4, 0).ok());

  first_.ReturnTo(0);

  EXPECT_TRUE(Becomes([&] {
    const auto taken = newest_->Take(held_, weights_);
    return taken.ok() && !taken->empty() && taken->front().header.generation == Generation{1};
  }));
}

TEST_F(NewestWeightsTest, AfterRestNoPullBeginsBeforeTheNextTake) {
  first_.SetVersion(1);
  ASSERT_TRUE(TakeUntil(1, 0).ok());
  ASSERT_TRUE(Becomes([&] { return first_.pulls().size() == 2; }));

  newest_->Rest();
  first_.SetVersion(2);  // The pull that waits is answered.

  const absl::Time end = SteadyNow() + absl::Milliseconds(50);
  while (SteadyNow() < end) ASSERT_EQ(first_.pulls().size(), 2u);
  ASSERT_TRUE(TakeUntil(2, 0).ok());
  ASSERT_TRUE(Becomes([&] { return first_.pulls().size() == 3; }));
  EXPECT_EQ(first_.pulls()[2].min_version(), 3u);
}

TEST_F(NewestWeightsTest, AShardThatHasNothingNewerIsAskedOnceForEachTake) {
  first_.SetVersion(1);
  ASSERT_TRUE(TakeUntil(1, 0).ok());
  ASSERT_TRUE(Becomes([&] { return first_.pulls().size() == 2; }));
  first_.Drain();

  // The answer may have come after another Take: that is one pull more.
  for (size_t takes = 1; takes <= 20; ++takes) {
    ASSERT_TRUE(newest_->Take(held_, weights_).ok());
    EXPECT_LE(first_.pulls().size(), 3 + takes);
  }
  EXPECT_TRUE(Becomes([&] { return first_.pulls().size() >= 3; }));
}

TEST_F(NewestWeightsTest, AnAggregatorIsAskedInPlaceOfItsShard) {
  FakeShard aggregator(map_.range(kShard0).size(), map_.fingerprint());
  Follow(aggregator.address());
  aggregator.SetVersion(4);
  second_.SetVersion(1);

  ASSERT_TRUE(TakeUntil(4, 1).ok());

  EXPECT_FALSE(aggregator.pulls().front().trains());
  EXPECT_TRUE(first_.pulls().empty());
  newest_.reset();  // Its pulls wait at the aggregator, which ends with this test.
}

TEST_F(NewestWeightsTest, AShardIsAskedAtOnceIfItsAggregatorRefuses) {
  FakeShard aggregator(map_.range(kShard0).size(), map_.fingerprint() + 1);
  Follow(aggregator.address());
  first_.SetVersion(4);

  ASSERT_TRUE(TakeUntil(4, 0).ok());

  EXPECT_FALSE(aggregator.pulls().empty());
}

TEST_F(NewestWeightsTest, AShardIsAskedIfItsAggregatorIsGone) {
  // Port 1 of this machine is reserved, and no process listens there.
  Follow("127.0.0.1:1");
  first_.SetVersion(4);

  EXPECT_TRUE(TakeUntil(4, 0).ok());
}

TEST_F(NewestWeightsTest, AThrownSwitchEndsTheLanes) {
  ASSERT_TRUE(newest_->Take(held_, weights_).ok());

  cancel_.Throw();

  EXPECT_EQ(TakeUntil(1, 1).code(), absl::StatusCode::kCancelled);
}

TEST_F(NewestWeightsTest, ItsEndLeavesTheSwitchOfTheOthersAlone) {
  ASSERT_TRUE(newest_->Take(held_, weights_).ok());
  newest_.reset();  // Both pulls wait at their shards.

  EXPECT_FALSE(cancel_.thrown());
}

TEST_F(NewestWeightsTest, AShardOutOfReachIsGivenUpByName) {
  // Port 1 of this machine is reserved, and no process listens there.
  newest_ = New("127.0.0.1:1", absl::Milliseconds(30));

  const absl::Status status = TakeUntil(1, 0);

  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_NE(status.message().find("127.0.0.1:1"), absl::string_view::npos) << status;
}

}  // namespace
}  // namespace slipstream
