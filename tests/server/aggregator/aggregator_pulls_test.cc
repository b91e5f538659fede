#include "server/aggregator/aggregator_pulls.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/server/aggregator/aggregator_fixture.h"

// Tests of the pulls that an aggregator answers.

namespace slipstream {
namespace {

class AggregatorPullsTest : public AggregatorTest {
 protected:
  PullRequest Request(uint32_t worker, uint64_t min_version) const {
    return {.identity = Identity{kRun, WorkerId{worker}, Incarnation{worker + 1}},
            .shard_map = orders_.model->shard_map.fingerprint(),
            .min_version = Version{min_version}};
  }

  /// Pulls as a worker that follows the shard. Returns the answer, if it is there already.
  std::optional<Answer> Pull(uint32_t worker, uint64_t min_version, RecordingCall& call) {
    std::optional<Answer> answer = aggregator_->Pull(Request(worker, min_version), &call);
    EXPECT_TRUE(!answer.has_value() || answer->refusal.ok());
    return answer;
  }

  static WeightsHeader HeaderOf(uint64_t version) {
    return {.version = Version{version}, .count = kValues};
  }

  /// Has the aggregator get this version for worker 0.
  void Fetch(uint64_t version) {
    RecordingCall call;
    ASSERT_FALSE(Pull(0, version, call).has_value());
    shard_.AnswerPull(HeaderOf(version));
    EXPECT_EQ(VersionOf(call.Await()), version);
    aggregator_->FinishPull(&call, {});
  }

  static uint64_t VersionOf(const Answer& answer) { return Value(answer.header->version); }
};

TEST_F(AggregatorPullsTest, AWorkerGetsWhatTheShardSends) {
  Start(2);
  RecordingCall call;
  WeightsHeader header = HeaderOf(3);
  header.stage = 2;

  EXPECT_FALSE(Pull(1, 2, call).has_value());

  const GroupPulls::Asked asked = shard_.AwaitPulls(1).front();
  EXPECT_EQ(asked.identity, Request(1, 2).identity);
  EXPECT_EQ(asked.min_version, Version{2});
  EXPECT_FALSE(call.is_answered());
  shard_.AnswerPull(header);
  const Answer answer = call.Await();
  EXPECT_EQ(*answer.header, header);
  const std::span<const float> values = answer.weights->values();
  EXPECT_EQ(std::vector<float>(values.begin(), values.end()), std::vector<float>(kValues, 3));
}

TEST_F(AggregatorPullsTest, AVersionThatIsThereIsGivenAtOnce) {
  Start(2);
  Fetch(3);
  RecordingCall first;
  RecordingCall second;

  const std::optional<Answer> to_first = Pull(0, 3, first);
  const std::optional<Answer> to_second = Pull(1, 1, second);

  ASSERT_TRUE(to_first.has_value() && to_second.has_value());
  EXPECT_EQ(VersionOf(*to_second), 3u);
  EXPECT_EQ(to_first->weights, to_second->weights) << "the values were copied";
  EXPECT_EQ(shard_.AwaitPulls(1).size(), 1u);
}

TEST_F(AggregatorPullsTest, OnePullUpwardIsForAllWhomItServes) {
  Start(2);
  RecordingCall first;
  RecordingCall second;
  RecordingCall later;
  Pull(0, 1, first);
  shard_.AwaitPulls(1);
  Pull(1, 3, second);
  Pull(1, 6, later);

  shard_.AnswerPull(HeaderOf(3));

  EXPECT_EQ(VersionOf(first.Await()), 3u);
  EXPECT_EQ(VersionOf(second.Await()), 3u);
  const std::vector<GroupPulls::Asked> pulls = shard_.AwaitPulls(2);
  EXPECT_EQ(pulls[1].min_version, Version{6});
  EXPECT_FALSE(later.is_answered());
  shard_.AnswerPull(HeaderOf(7));
  EXPECT_EQ(VersionOf(later.Await()), 7u);
}

TEST_F(AggregatorPullsTest, WeightsOfALaterGenerationServeAllWhoFollowedAnEarlierOne) {
  Start(2);
  Fetch(5);
  RecordingCall waits;
  Pull(0, 6, waits);
  EXPECT_EQ(shard_.AwaitPulls(2)[1].min_generation, Generation{0});
  WeightsHeader header = HeaderOf(3);
  header.generation = Generation{1};

  shard_.AnswerPull(header);

  EXPECT_EQ(*waits.Await().header, header);
  RecordingCall at_once;
  const std::optional<Answer> answer = Pull(1, 6, at_once);
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(*answer->header, header);
}

TEST_F(AggregatorPullsTest, AFailureSendsAllWhoWaitToTheShard) {
  Start(2);
  RecordingCall first;
  RecordingCall second;
  Pull(0, 1, first);
  shard_.AwaitPulls(1);
  Pull(1, 1, second);

  shard_.AnswerPull(absl::UnavailableError("the shard is away"));

  EXPECT_TRUE(absl::IsUnavailable(first.Await().refusal));
  EXPECT_TRUE(absl::IsUnavailable(second.Await().refusal));
  Fetch(1);
}

TEST_F(AggregatorPullsTest, AWorkerThatTheShardRefusesDoesNotStopTheOthers) {
  Start(2);
  RecordingCall fenced;
  RecordingCall other;
  Pull(0, 1, fenced);
  shard_.AwaitPulls(1);
  Pull(1, 1, other);

  shard_.AnswerPull(absl::FailedPreconditionError("FENCED"));
  shard_.AnswerPull(HeaderOf(2));

  EXPECT_TRUE(absl::IsUnavailable(fenced.Await().refusal));
  EXPECT_EQ(VersionOf(other.Await()), 2u);
  EXPECT_EQ(shard_.AwaitPulls(2)[1].identity, Request(1, 1).identity);
}

TEST_F(AggregatorPullsTest, WhereNothingNewerComesAllGetWhatThereIs) {
  Start(2);
  Fetch(5);
  RecordingCall first;
  RecordingCall second;
  Pull(0, 6, first);
  shard_.AwaitPulls(2);
  Pull(1, 9, second);

  shard_.AnswerPull(HeaderOf(5));

  EXPECT_EQ(VersionOf(first.Await()), 5u);
  EXPECT_EQ(VersionOf(second.Await()), 5u);
  EXPECT_EQ(shard_.AwaitPulls(2).size(), 2u);
}

TEST_F(AggregatorPullsTest, AnswersOnlyMembersOfItsGroupThatFollow) {
  Start(3);
  std::map<std::string, PullRequest> refused;
  const auto add = [&](const std::string& why, uint32_t worker, const auto& change) {
    refused[why] = Request(worker, 0);
    change(refused[why]);
  };
  add("another group", 2, [](PullRequest&) {});
  add("no member", 1, [](PullRequest& r) { r.identity->incarnation = Incarnation{9}; });
  add("nobody", 0, [](PullRequest& r) { r.identity.reset(); });
  add("another run", 0, [](PullRequest& r) { r.identity->run = 6; });
  add("another map", 0, [](PullRequest& r) { ++r.shard_map; });
  add("for training", 0, [](PullRequest& r) { r.trains = true; });
  add("one state", 0, [](PullRequest& r) { r.exact = Stamp(); });
  add("changes", 0, [](PullRequest& r) { r.held = Version{1}; });
  add("a trailer", 0, [](PullRequest& r) { r.wants_trailer = true; });
  add("a reader's", 0, [](PullRequest& r) { r.reader = 1; });

  RecordingCall call;
  for (const auto& [why, request] : refused) {
    EXPECT_TRUE(absl::IsFailedPrecondition(aggregator_->Pull(request, &call)->refusal)) << why;
  }
  aggregator_->OnUpstream("");
  EXPECT_TRUE(absl::IsUnavailable(aggregator_->Pull(Request(0, 0), &call)->refusal));
}

TEST_F(AggregatorPullsTest, AWorkerHasSoManyPullsOpen) {
  Start(2);
  Fetch(1);
  std::vector<RecordingCall> calls(GroupPulls::kPullsOfWorkerMax);
  for (RecordingCall& call : calls) EXPECT_TRUE(Pull(0, 1, call).has_value());
  RecordingCall another;

  const std::optional<Answer> refused = aggregator_->Pull(Request(0, 1), &another);
  ASSERT_TRUE(refused.has_value());
  EXPECT_TRUE(absl::IsResourceExhausted(refused->refusal));
  EXPECT_TRUE(Pull(1, 1, another).has_value());
  aggregator_->FinishPull(&calls.front(), {});
  EXPECT_TRUE(Pull(0, 1, calls.front()).has_value());
}

TEST_F(AggregatorPullsTest, EndsWhileItWaitsForTheShard) {
  Start(2);
  RecordingCall gone;
  RecordingCall waits;
  Pull(0, 1, gone);
  Pull(1, 1, waits);
  shard_.AwaitPulls(1);

  EXPECT_TRUE(aggregator_->Cancel(&gone));
  EXPECT_FALSE(aggregator_->Cancel(&gone));
  aggregator_.reset();

  EXPECT_FALSE(gone.is_answered());
  EXPECT_TRUE(absl::IsUnavailable(waits.Await().refusal));
}

}  // namespace
}  // namespace slipstream
