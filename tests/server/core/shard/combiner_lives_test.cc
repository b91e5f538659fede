#include <gtest/gtest.h>

#include "server/core/shard/combiner.h"
#include "tests/server/core/shard/combiner_fixture.h"

// Tests of a combiner whose shard returns to a checkpoint and begins a new life.

namespace slipstream {
namespace {

PushHeader InLife(uint64_t life, PushHeader header) {
  header.life = Life{life};
  return header;
}

/// The same group after its first pushes, under a policy whose rounds take a gradient of each
/// member.
class CombinerLivesTest : public CombinerTest {
 protected:
  CombinerLivesTest() {
    combiner_.SetPolicy(OnePerMember());
    SendTogether();
  }
};

TEST_F(CombinerLivesTest, WaitsForAllMembersInANewLife) {
  SendBack(0);
  combiner_.OnLife(Life{1});

  Push(InLife(1, HeaderWith(6, 1, 0)));
  EXPECT_EQ(Take(), "");
  EXPECT_EQ(WaitingFor(), (Ids{4, 5}));
  EXPECT_EQ(combiner_.NextLook(), now_ + Combiner::kLongPatience);
  Push(InLife(1, HeaderWith(4, 1, 0)));
  EXPECT_EQ(Take(), "");
  Push(InLife(1, HeaderWith(5, 1, 0)));

  EXPECT_EQ(Take(), "401 501 601");
}

TEST_F(CombinerLivesTest, WaitsForMembersWhosePushesOfTheEarlierLifeAreOnTheirWay) {
  combiner_.OnLife(Life{1});
  EXPECT_FALSE(combiner_.OnGone(Part(4, 1), now_));
  Push(InLife(1, HeaderWith(4, 2, 0)));
  Push(InLife(1, HeaderWith(5, 2, 0)));
  EXPECT_EQ(Take(), "");

  SendBack(0);
  EXPECT_EQ(Take(), "");
  EXPECT_EQ(WaitingFor(), (Ids{6}));
  Push(InLife(1, HeaderWith(6, 2, 0)));

  EXPECT_EQ(Take(), "402 502 602");
}

TEST_F(CombinerLivesTest, PushesOfAnEarlierLifeLeaveAtOnceAndByThemselves) {
  Answer(0, {true, true, true});
  Push(4, 2, 1);
  combiner_.OnLife(Life{1});
  Push(InLife(1, HeaderWith(5, 2, 1)));

  EXPECT_EQ(Take(), "402");
  EXPECT_EQ(WaitingFor(), (Ids{4, 6}));
}

TEST_F(CombinerLivesTest, WaitsForNobodyWhoHasLeftTheRun) {
  SendBack(0);
  combiner_.OnLife(Life{1});
  combiner_.OnView(ViewOf(2, {Founding(4)}));

  Push(InLife(1, HeaderWith(4, 1, 0)));

  EXPECT_EQ(Take(), "401");
}

TEST_F(CombinerLivesTest, WaitsNoLongerThanPatienceInANewLife) {
  SendBack(0);
  combiner_.OnLife(Life{1});
  Push(InLife(1, HeaderWith(4, 1, 0)));
  now_ += Combiner::kLongPatience;
  EXPECT_EQ(Take(), "401");
  Answer(1, {true});

  Push(InLife(1, HeaderWith(4, 2, 1)));

  EXPECT_EQ(Take(), "402");
}

TEST_F(CombinerTest, WaitsForNobodyInANewLifeWhereRoundsDoNotNeedAll) {
  SendTogether();
  SendBack(0);
  combiner_.OnLife(Life{1});

  Push(InLife(1, HeaderWith(4, 1, 0)));

  EXPECT_EQ(Take(), "401");
}

}  // namespace
}  // namespace slipstream
