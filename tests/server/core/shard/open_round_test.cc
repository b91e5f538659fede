#include "server/core/shard/open_round.h"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "common/base/philox.h"
#include "tests/support/specs.h"

namespace slipstream {
namespace {

constexpr uint32_t kWorkers = 6;

class OpenRoundTest : public testing::Test {
 protected:
  OpenRoundTest() {
    View view{.number = ViewNumber{1}};
    for (uint32_t worker = 0; worker < kWorkers; ++worker) {
      view.members.push_back({WorkerId{worker}, Incarnation{worker + 1}, worker < kWorkers / 2});
    }
    members_.InstallView(view);
    open_.awaited = Fresh();
  }

  static Round NewRound() { return {PolicyTraits::Order::kRank, PolicyTraits::Weighing::kEqual}; }

  /// Returns those whom the round waits for, found by a look at all members.
  AwaitedMembers Fresh() const { return {members_, open_.round, decided_}; }
  std::vector<WorkerId> Awaited() const {
    return {open_.awaited->all().begin(), open_.awaited->all().end()};
  }

  void OweFrom(WorkerId worker, Version from) {
    if (!members_.At(worker).OweFrom(from)) return;
    open_.awaited->Owe(worker, from, open_.round.HasHeardFrom(worker), decided_);
  }

  MemberTable members_;
  Version decided_{};
  OpenRound open_{.round = NewRound()};
};

TEST_F(OpenRoundTest, AwaitsWhoOwesItAndHasNotBeenHeard) {
  EXPECT_EQ(Awaited(), Workers({0, 1, 2})) << "the founding members";
  OweFrom(WorkerId{4}, Version{1});
  OweFrom(WorkerId{5}, Version{0});
  open_.Add({.worker = WorkerId{0}, .others = {{.worker = WorkerId{2}}}});
  open_.Excuse(WorkerId{4});
  EXPECT_EQ(Awaited(), Workers({1, 5}));

  decided_ = Version{1};
  open_.Close(NewRound(), decided_, /*notes_done=*/true);

  EXPECT_EQ(Awaited(), Workers({0, 1, 2, 4, 5}));
}

TEST_F(OpenRoundTest, AwaitsWhomALookAtAllMembersFinds) {
  RandomStream random(3, 1);
  for (int step = 0; step < 2'000; ++step) {
    const WorkerId worker{random.Below(kWorkers + 1)};  // The last one is no member.
    switch (random.Below(6)) {
      case 0:
        decided_ = Next(decided_);
        open_.Close(NewRound(), decided_, random.Below(2) == 0);
        break;
      case 1:
        open_.Excuse(worker, random.Below(2) == 0);
        break;
      case 2:
        if (Value(worker) == kWorkers) break;
        OweFrom(worker, Version{Value(decided_) + random.Below(4)});
        break;
      default:
        open_.Add({.worker = worker});
    }
    ASSERT_EQ(*open_.awaited, Fresh()) << step;
    if (step % 50 > 0) continue;
    // Everybody comes anew, and owes nothing at first.
    View view = members_.view();
    view.number = ViewNumber{Value(view.number) + 1};
    for (Member& member : view.members) {
      member.incarnation = Incarnation{Value(member.incarnation) + kWorkers};
      member.founding = random.Below(3) == 0;
    }
    members_.InstallView(view);
    open_.awaited = Fresh();
  }
}

}  // namespace
}  // namespace slipstream
