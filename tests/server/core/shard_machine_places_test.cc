#include <gtest/gtest.h>

#include <variant>

#include "tests/support/shard_machine_driver.h"

// Tests of rounds in which a worker has the place of a lost one: it is a founding member of a later
// incarnation.

namespace slipstream {
namespace {

class PlacesTest : public testing::Test {
 protected:
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
  ShardMachineDriver driver_{TestOptions({ConsistencySpec::Policy::kHardsync})};
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

}  // namespace
}  // namespace slipstream
