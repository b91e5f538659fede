#include <gtest/gtest.h>

#include "server/core/shard/combiner.h"
#include "tests/server/core/shard/combiner_fixture.h"

// Tests of a combiner whose shard returns to a checkpoint and begins a new generation.

namespace slipstream {
namespace {

PushHeader InGeneration(uint64_t generation, PushHeader header) {
  header.generation = Generation{generation};
  return header;
}

/// The same group after its first pushes, under a policy whose rounds take a gradient of each
/// member.
class CombinerGenerationsTest : public CombinerTest {
 protected:
  CombinerGenerationsTest() {
    combiner_.SetPolicy(OnePerMember());
    SendTogether();
  }
};

TEST_F(CombinerGenerationsTest, WaitsForAllMembersInANewGeneration) {
  SendBack(0);
  combiner_.OnGeneration(Generation{1});

  Push(InGeneration(1, HeaderWith(6, 1, 0)));
  EXPECT_EQ(Take(), "");
  EXPECT_EQ(WaitingFor(), (Ids{4, 5}));
  EXPECT_EQ(combiner_.NextLook(), now_ + Combiner::kLongPatience);
  Push(InGeneration(1, HeaderWith(4, 1, 0)));
  EXPECT_EQ(Take(), "");
  Push(InGeneration(1, HeaderWith(5, 1, 0)));

  EXPECT_EQ(Take(), "401 501 601");
}

TEST_F(CombinerGenerationsTest, WaitsForMembersWhosePushesOfTheEarlierGenerationAreOnTheirWay) {
  combiner_.OnGeneration(Generation{1});
  EXPECT_FALSE(combiner_.OnGone(Part(4, 1), now_));
  Push(InGeneration(1, HeaderWith(4, 2, 0)));
  Push(InGeneration(1, HeaderWith(5, 2, 0)));
  EXPECT_EQ(Take(), "");

  SendBack(0);
  EXPECT_EQ(Take(), "");
  EXPECT_EQ(WaitingFor(), (Ids{6}));
  Push(InGeneration(1, HeaderWith(6, 2, 0)));

  EXPECT_EQ(Take(), "402 502 602");
}

TEST_F(CombinerGenerationsTest, PushesOfAnEarlierGenerationLeaveAtOnceAndByThemselves) {
  Answer(0, {true, true, true});
  Push(4, 2, 1);
  combiner_.OnGeneration(Generation{1});
  Push(InGeneration(1, HeaderWith(5, 2, 1)));

  EXPECT_EQ(Take(), "402");
  EXPECT_EQ(WaitingFor(), (Ids{4, 6}));
}

TEST_F(CombinerGenerationsTest, WaitsForNobodyWhoHasLeftTheRun) {
  SendBack(0);
  combiner_.OnGeneration(Generation{1});
  combiner_.OnView(ViewOf(2, {Founding(4)}));

  Push(InGeneration(1, HeaderWith(4, 1, 0)));

  EXPECT_EQ(Take(), "401");
}

TEST_F(CombinerGenerationsTest, WaitsNoLongerThanPatienceInANewGeneration) {
  SendBack(0);
  combiner_.OnGeneration(Generation{1});
  Push(InGeneration(1, HeaderWith(4, 1, 0)));
  now_ += Combiner::kLongPatience;
  EXPECT_EQ(Take(), "401");
  Answer(1, {true});

  Push(InGeneration(1, HeaderWith(4, 2, 1)));

  EXPECT_EQ(Take(), "402");
}

TEST_F(CombinerTest, WaitsForNobodyInANewGenerationWhereRoundsDoNotNeedAll) {
  SendTogether();
  SendBack(0);
  combiner_.OnGeneration(Generation{1});

  Push(InGeneration(1, HeaderWith(4, 1, 0)));

  EXPECT_EQ(Take(), "401");
}

}  // namespace
}  // namespace slipstream
