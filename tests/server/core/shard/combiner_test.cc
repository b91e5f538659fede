#include "server/core/shard/combiner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/server/core/shard/combiner_fixture.h"

namespace slipstream {
namespace {

constexpr absl::Duration kPatience = Combiner::kPatience;

TEST_F(CombinerTest, KnowsItsGroup) {
  EXPECT_FALSE(combiner_.IsOfGroup(WorkerId{3}));
  EXPECT_TRUE(combiner_.IsOfGroup(WorkerId{4}));
  EXPECT_TRUE(combiner_.IsOfGroup(WorkerId{6}));
  EXPECT_FALSE(combiner_.IsOfGroup(WorkerId{7}));
}

TEST_F(CombinerTest, WaitsForAllFoundingMembersOfItsGroup) {
  Begin();

  Push(6, 1);
  Push(4, 1);

  EXPECT_EQ(Take(), "");
  EXPECT_EQ(WaitingFor(), (Ids{5}));
  EXPECT_EQ(combiner_.WaitingSince(), now_);
  EXPECT_EQ(combiner_.NextLook(), now_ + Combiner::kLongPatience);

  Push(5, 1);

  EXPECT_EQ(Take(), "401 501 601");
  EXPECT_EQ(WaitingFor(), (Ids{}));
  EXPECT_EQ(combiner_.NextLook(), absl::InfiniteFuture());
}

TEST_F(CombinerTest, SendsALonePushAtOnceIfNobodyIsAwaited) {
  Push(5, 1);

  EXPECT_EQ(Take(), "501");
}

TEST_F(CombinerTest, WaitsForThoseThatGoOnWithAnAnswer) {
  SendTogether();

  EXPECT_EQ(Answer(0, {true, true, false}), (Places{0}));

  Push(4, 2, 1);
  EXPECT_EQ(Take(), "");
  EXPECT_EQ(WaitingFor(), (Ids{5}));
  Push(5, 2, 1);
  EXPECT_EQ(Take(), "402 502");
}

TEST_F(CombinerTest, DoesNotWaitForAWorkerThatRests) {
  Begin();
  PushHeader last = HeaderWith(4, 1, 0);
  last.rests = true;
  Push(last);
  Push(5, 1);
  Push(6, 1);
  ASSERT_EQ(Take(), "401 501 601");

  Answer(0, {true, true, true});
  Push(5, 2, 1);
  Push(6, 2, 1);

  EXPECT_EQ(Take(), "502 602");
}

TEST_F(CombinerTest, DoesNotWaitForWorkersWhosePushesWereSentBack) {
  SendTogether();

  EXPECT_EQ(SendBack(0), (Places{0}));
  Push(4, 2, 1);

  EXPECT_EQ(Take(), "402");
}

TEST_F(CombinerTest, StopsWaitingForAWorkerWhoseCallEnds) {
  Begin();
  Push(4, 1);
  Push(5, 1);
  ASSERT_EQ(Take(), "");

  combiner_.OnAway(WorkerId{6});

  EXPECT_EQ(Take(), "401 501");
}

TEST_F(CombinerTest, StopsWaitingForAWorkerThatLeavesTheView) {
  Begin();
  Push(4, 1);
  Push(5, 1);

  combiner_.OnView(ViewOf(2, {Founding(4), Founding(5)}));

  EXPECT_EQ(Take(), "401 501");
}

TEST_F(CombinerTest, DoesNotWaitForAProcessThatTakesAWorkersPlaceUntilItPushes) {
  Begin();
  Push(4, 1);
  Push(5, 1);
  const Member again = {WorkerId{6}, Incarnation{60}, false};

  combiner_.OnView(ViewOf(2, {Founding(4), Founding(5), again}));
  EXPECT_EQ(Take(), "401 501");
  Answer(0, {true, true});

  PushHeader first = HeaderWith(6, 1, 0);
  first.identity.incarnation = again.incarnation;
  Push(first);
  Push(4, 2, 0);
  EXPECT_EQ(Take(), "");
  EXPECT_EQ(WaitingFor(), (Ids{5}));
}

TEST_F(CombinerTest, DoesNotWaitForMembersThatJoinLater) {
  combiner_.OnView(ViewOf(1, {Founding(4), Founding(5)}));
  combiner_.OnView(ViewOf(2, {Founding(4), Founding(5), {WorkerId{6}, Incarnation{6}, false}}));

  Push(4, 1);
  Push(5, 1);

  EXPECT_EQ(Take(), "401 501");
}

TEST_F(CombinerTest, DoesNotWaitForFoundingMembersIfItComesWhileTheRunTrains) {
  Begin();

  Push(4, 17, 9);
  EXPECT_EQ(Take(), "417");

  Answer(0, {true});
  Push(5, 18, 10);
  EXPECT_EQ(Take(), "");
  EXPECT_EQ(WaitingFor(), (Ids{4}));
}

TEST_F(CombinerTest, DoesNotWaitForAProcessThatWasReplacedWhileItsPushWasOnItsWay) {
  SendTogether();
  const Member again = {WorkerId{6}, Incarnation{60}, false};

  combiner_.OnView(ViewOf(2, {Founding(4), Founding(5), again}));
  Answer(0, {true, true, true});
  Push(4, 2, 1);
  Push(5, 2, 1);

  EXPECT_EQ(Take(), "402 502");
}

TEST_F(CombinerTest, SendsWhatItHasWhenPatienceEndsAndNoLongerWaitsForTheSlow) {
  SendTogether();
  Answer(0, {true, true, true});
  Push(4, 2, 1);
  now_ += kPatience - absl::Nanoseconds(1);
  Push(5, 2, 1);
  EXPECT_EQ(Take(), "");

  // The median step is that of worker 5.
  now_ += 2 * kPatience;
  EXPECT_EQ(Take(), "402 502");

  Answer(1, {true, false});
  Push(4, 3, 2);
  EXPECT_EQ(Take(), "403");
}

TEST_F(CombinerTest, IsMorePatientTheLongerStepsTake) {
  SendTogether();
  Answer(0, {true, true, true});
  now_ += absl::Seconds(10);
  for (const uint32_t worker : {4, 5, 6}) Push(worker, 2, 1);
  ASSERT_EQ(Take(), "402 502 602");
  Answer(1, {true, true, true});

  Push(4, 3, 2);

  EXPECT_EQ(combiner_.NextLook(), now_ + kPatience + absl::Seconds(20));
}

TEST_F(CombinerTest, WorkersThatCameApartComeTogetherAgain) {
  Push(4, 1);
  ASSERT_EQ(Take(), "401");

  Push(5, 1);
  EXPECT_EQ(Take(), "");
  EXPECT_EQ(WaitingFor(), (Ids{4}));
  Answer(0, {true});
  EXPECT_EQ(Take(), "");
  Push(4, 2);

  EXPECT_EQ(Take(), "402 501");
}

TEST_F(CombinerTest, WaitsForNoAnswerThatMayWaitForWhatItHas) {
  combiner_.SetPolicy(OnePerMember());
  Push(4, 1);
  ASSERT_EQ(Take(), "401");

  Push(5, 1);

  EXPECT_EQ(Take(), "501");
}

TEST_F(CombinerTest, CombinesOnlyPushesOfOneVersionAndSendsTheOldestVersionFirst) {
  Begin();
  Push(4, 1, 8);
  Push(5, 1, 7);
  Push(6, 1, 8);

  EXPECT_EQ(Take(), "501 | 401 601");
}

TEST_F(CombinerTest, CombinesPushesOfAllVersionsWhereTheShardScalesThemAlike) {
  Combiner combiner({.first = WorkerId{kFirst}, .workers = 2, .mixes_versions = true});
  combiner.OnView(ViewOf(1, {Founding(4), Founding(5)}));
  combiner.OnPush(Part(4, 1), HeaderWith(4, 1, 8), now_);
  combiner.OnPush(Part(5, 1), HeaderWith(5, 1, 7), now_);

  EXPECT_EQ(combiner.TakeComposite(now_)->parts.size(), 2u);
}

TEST_F(CombinerTest, HandsTheAnswersOfABatchOnTogether) {
  SendTwoVersions();

  EXPECT_EQ(Answer(1, {true, true}), (Places{}));
  EXPECT_EQ(Answer(0, {true}), (Places{0, 1}));
}

TEST_F(CombinerTest, AnswersAtOnceWhatCouldNotBeCombined) {
  SendTwoVersions();

  EXPECT_EQ(SendBack(0), (Places{0}));
  EXPECT_EQ(Answer(1, {true, true}), (Places{1}));
}

TEST_F(CombinerTest, AnswersAtOnceWhatHadCountedBefore) {
  SendTwoVersions();

  const Combiner::Verdict again = {.is_counted = true, .is_repeated = true, .goes_on = {true}};
  EXPECT_EQ(Numbers(combiner_.OnAnswer(taken_[0].id, again, now_)), (Places{0}));
}

TEST_F(CombinerTest, HandsAHeldAnswerOnWithTheLastOneThoughThatWasNotCombined) {
  SendTwoVersions();

  EXPECT_EQ(Answer(1, {true, true}), (Places{}));
  EXPECT_EQ(SendBack(0), (Places{0, 1}));
}

TEST_F(CombinerTest, HoldsNoAnswerForLongerThanPatience) {
  SendTwoVersions();
  ASSERT_EQ(Answer(0, {true}), (Places{}));
  EXPECT_EQ(combiner_.NextLook(), now_ + kPatience);

  EXPECT_EQ(Numbers(combiner_.TakeHeld(now_ + kPatience - absl::Nanoseconds(1))), (Places{}));
  now_ += kPatience;
  EXPECT_EQ(Numbers(combiner_.TakeHeld(now_)), (Places{0}));

  EXPECT_EQ(combiner_.NextLook(), absl::InfiniteFuture());
  EXPECT_EQ(Answer(1, {true, true}), (Places{1}));
}

TEST_F(CombinerTest, KeepsALaterPushOfAWorkerUntilTheEarlierOneIsAnswered) {
  Push(4, 1);
  Push(4, 2);
  Push(5, 1);

  EXPECT_EQ(Take(), "401 501");
  EXPECT_EQ(Take(), "");
  Answer(0, {true, false});
  EXPECT_EQ(Take(), "402");
}

TEST_F(CombinerTest, ForgetsAPushThatNobodyWaitsForUnlessItIsOnItsWay) {
  Begin();
  Push(4, 1);
  Push(5, 1);

  EXPECT_TRUE(combiner_.OnGone(Part(4, 1), now_));
  Push(6, 1);
  EXPECT_EQ(Take(), "501 601");

  EXPECT_FALSE(combiner_.OnGone(Part(5, 1), now_));
  EXPECT_EQ(Answer(0, {true, true}), (Places{0}));
  Push(6, 2, 1);
  EXPECT_EQ(Take(), "602");  // Worker 5 has left, and was not awaited.
}

TEST_F(CombinerTest, ForgetsALaterPushThatNobodyWaitsFor) {
  Push(4, 1);
  ASSERT_EQ(Take(), "401");
  Push(4, 2);

  EXPECT_TRUE(combiner_.OnGone(Part(4, 2), now_));
  Answer(0, {true});
  Push(5, 1);

  EXPECT_EQ(Take(), "501");
}

}  // namespace
}  // namespace slipstream
