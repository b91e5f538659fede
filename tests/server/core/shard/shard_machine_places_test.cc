#include <gtest/gtest.h>

#include <variant>

#include "tests/support/shard_machine_driver.h"

// Tests of rounds in which a worker has the place of a lost one: it is a founding member of a later
// incarnation.

namespace slipstream {
namespace {

ShardMachine::Options Keeping(uint32_t versions) {
  ShardMachine::Options options = TestOptions({ConsistencySpec::Policy::kHardsync});
  options.versions_kept = versions;
  options.repeats_rounds = versions > 1;
  return options;
}

class PlacesTest : public testing::Test {
 protected:
  explicit PlacesTest(uint32_t versions_kept = 1) : driver_(Keeping(versions_kept)) {}

  /// Begins with two members.
  void SetUp() override { driver_.Start(FoundingView(2)); }

  /// Another worker takes the place of worker 1.
  void Replace() {
    driver_.OnView({.number = ViewNumber{2}, .members = {FoundingView(2).members[0], next_}});
  }

  /// Returns the first push of the worker that has taken the place.
  ShardMachine::PushFacts PushOfNext() const {
    ShardMachine::PushFacts push = PushOf(1, 1, 0);
    push.header.identity = IdentityOf(next_);
    return push;
  }

  const Member next_ = {WorkerId{1}, Incarnation{9}, true};
  ShardMachineDriver driver_;
};

TEST_F(PlacesTest, WhoHasALostPlaceIsAwaitedAndGetsTheMiniBatchOfTheOneBefore) {
  driver_.Pull(TrainingPullOf(0));
  const RoundWork lost = *std::get<Serve>(driver_.Pull(TrainingPullOf(1))).work;
  driver_.Push(PushOf(0, 1, 0), 2);
  Replace();
  ASSERT_EQ(driver_.LackedMembers(), std::vector<WorkerId>{WorkerId{1}});

  PullRequest pull = TrainingPullOf(1);
  pull.identity = IdentityOf(next_);
  const PullDecision decision = driver_.Pull(pull);
  driver_.Push(PushOfNext(), 4);

  EXPECT_EQ(std::get<Serve>(decision).work, lost);
  EXPECT_EQ(driver_.LastFolded(), "0 1");
}

TEST_F(PlacesTest, AGradientThatTheLostOneHadBroughtCountsOnce) {
  driver_.Push(PushOf(1, 1, 0), 4);
  Replace();

  EXPECT_EQ(driver_.Push(PushOfNext(), 4).reply.outcome, PushOutcome::kDroppedLate);

  driver_.Push(PushOf(0, 1, 0), 2);
  EXPECT_EQ(driver_.LastFolded(), "0 1");
}

/// The lost worker's place is in a round that another shard may have closed without its gradient.
class RepeatedRoundsTest : public PlacesTest {
 protected:
  RepeatedRoundsTest() : PlacesTest(/*versions_kept=*/2) {}

  /// Closes the round of version 0 with both members. Returns the mini-batch of the lost worker.
  RoundWork CloseFirstRound() {
    driver_.Pull(TrainingPullOf(0));
    const RoundWork lost = *std::get<Serve>(driver_.Pull(TrainingPullOf(1))).work;
    driver_.Push(PushOf(1, 1, 0), 4);
    driver_.Push(PushOf(0, 1, 0), 2);
    driver_.PublishAll();
    return lost;
  }

  /// Returns the answer to the first pull of the worker that has taken the place.
  Serve PullOfNext(uint64_t min_version = 0) {
    PullRequest pull = TrainingPullOf(1, min_version);
    pull.identity = IdentityOf(next_);
    return std::get<Serve>(driver_.Pull(pull));
  }
};

TEST_F(RepeatedRoundsTest, WhoHasALostPlaceDoesTheLastRoundAgainAndItCountsOnce) {
  const RoundWork lost = CloseFirstRound();
  Replace();

  const Serve served = PullOfNext();
  EXPECT_EQ(served.version, Version{0});
  EXPECT_EQ(served.work, lost);

  ShardMachine::PushFacts again = PushOfNext();
  again.header.pull = true;
  const PushDecision decision = driver_.Push(again, 4);
  EXPECT_EQ(decision.reply.outcome, PushOutcome::kDroppedLate);
  const Serve next = std::get<Serve>(*decision.answer);
  EXPECT_EQ(next.version, Version{1});
  EXPECT_NE(next.work, lost);
  EXPECT_EQ(driver_.updates().size(), 1u);
}

TEST_F(RepeatedRoundsTest, AWorkerThatIsFurtherElsewhereIsGivenTheOpenRound) {
  CloseFirstRound();
  Replace();

  EXPECT_EQ(PullOfNext(/*min_version=*/1).version, Version{1});
}

TEST_F(RepeatedRoundsTest, AnExcuseFromTheRoundBeforeLeavesTheOpenRoundOpen) {
  CloseFirstRound();
  Replace();
  PullOfNext();

  ShardMachine::PushFacts excuse = ExcuseOf(1, 1, 0);
  excuse.header.identity = IdentityOf(next_);
  excuse.header.pull = true;
  EXPECT_EQ(std::get<Serve>(*driver_.Push(excuse, 0).answer).version, Version{1});

  driver_.Push(PushOf(0, 2, 1), 2);
  EXPECT_EQ(driver_.LackedMembers(), std::vector<WorkerId>{WorkerId{1}});
}

TEST_F(RepeatedRoundsTest, ARoundThatHasTheGradientOfTheLostOneIsNotLeft) {
  CloseFirstRound();
  driver_.Push(PushOf(1, 2, 1), 4);
  Replace();

  EXPECT_EQ(PullOfNext().version, Version{1});
}

TEST_F(RepeatedRoundsTest, AWorkerThatAsksTwiceDoesNotRepeatItsOwnRound) {
  CloseFirstRound();

  EXPECT_EQ(std::get<Serve>(driver_.Pull(TrainingPullOf(1, 0, 2))).version, Version{1});
}

TEST_F(RepeatedRoundsTest, NothingIsRepeatedWhereTheRunEnds) {
  CloseFirstRound();
  Replace();
  driver_.OnPhase(Phase::kDraining, 1);

  EXPECT_EQ(PullOfNext().version, Version{1});
}

}  // namespace
}  // namespace slipstream
