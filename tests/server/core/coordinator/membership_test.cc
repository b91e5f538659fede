#include "server/core/coordinator/membership.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "common/base/limits.h"
#include "common/base/philox.h"

namespace slipstream {
namespace {

constexpr uint64_t kRun = 77;
constexpr absl::Duration kLease = absl::Seconds(5);

absl::Time At(double seconds) { return absl::UnixEpoch() + absl::Seconds(seconds); }

Identity Join(Membership& membership, std::optional<WorkerId> asked, absl::Time now) {
  const auto made = membership.Register({.worker = asked, .host = "host"}, now);
  EXPECT_TRUE(made.ok()) << made.status();
  return {kRun, made->worker, made->incarnation};
}

TEST(MembershipTest, GivesTheLowestFreeIdToAWorkerThatAsksForNone) {
  Membership membership(kRun, kLease);
  Join(membership, WorkerId{1}, At(0));

  EXPECT_EQ(Join(membership, std::nullopt, At(0)).worker, WorkerId{0});
  EXPECT_EQ(Join(membership, std::nullopt, At(0)).worker, WorkerId{2});
}

TEST(MembershipTest, GivesTheIdOfADeadWorkerToTheNext) {
  Membership membership(kRun, kLease);
  Join(membership, std::nullopt, At(0));
  membership.Expire(At(6));

  EXPECT_EQ(Join(membership, std::nullopt, At(6)).worker, WorkerId{0});
}

TEST(MembershipTest, ANewerIncarnationFencesTheOlder) {
  Membership membership(kRun, kLease);
  const Identity older = Join(membership, WorkerId{3}, At(0));
  const Identity newer = Join(membership, WorkerId{3}, At(1));

  EXPECT_GT(newer.incarnation, older.incarnation);
  EXPECT_EQ(membership.Renew(older, At(1)).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(membership.Check(older).message().find("fenced"), absl::string_view::npos);
  EXPECT_TRUE(membership.Renew(newer, At(1)).ok());
  EXPECT_EQ(membership.live(), 1u);
}

TEST(MembershipTest, OneThatRegistersAgainAndAgainIsSlowedDown) {
  Membership membership(kRun, kLease);
  size_t made = 0;
  for (uint32_t i = 0; i < 2 * kWorkersMax; ++i) {
    made += membership.Register({.worker = WorkerId{3}, .host = "host"}, At(0)).ok() ? 1 : 0;
  }
  EXPECT_EQ(made, 1 + Membership::kAgainAtOnce);
  const auto refused = membership.Register({.worker = WorkerId{3}, .host = "host"}, At(0));
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);

  Join(membership, WorkerId{4}, At(0));  // One that is new is not.
  Join(membership, WorkerId{3}, At(1));
}

TEST(MembershipTest, RefusesAnotherRunAndWorkersItDoesNotKnow) {
  Membership membership(kRun, kLease);
  Identity worker = Join(membership, std::nullopt, At(0));

  EXPECT_FALSE(membership.Check({kRun + 1, worker.worker, worker.incarnation}).ok());
  EXPECT_FALSE(membership.Check({kRun, WorkerId{9}, worker.incarnation}).ok());
  EXPECT_FALSE(membership.Check({kRun, worker.worker, Incarnation{99}}).ok());
}

TEST(MembershipTest, ALeaseEndsOnlyAfterItsWholeLength) {
  Membership membership(kRun, kLease);
  const Identity worker = Join(membership, std::nullopt, At(0));

  EXPECT_TRUE(membership.Expire(At(5)).empty());
  EXPECT_EQ(membership.Expire(At(5.001)), std::vector<WorkerId>{worker.worker});
  EXPECT_TRUE(membership.Expire(At(9)).empty());
  EXPECT_FALSE(membership.Renew(worker, At(9)).ok());
}

TEST(MembershipTest, AHeartbeatRenewsTheLease) {
  Membership membership(kRun, kLease);
  const Identity worker = Join(membership, std::nullopt, At(0));

  ASSERT_TRUE(membership.Renew(worker, At(4)).ok());

  EXPECT_TRUE(membership.Expire(At(9)).empty());
  EXPECT_EQ(membership.LeaseLeft(membership.workers().at(worker.worker), At(8)), absl::Seconds(1));
}

TEST(MembershipTest, APushRenewsTheLeaseOnce) {
  Membership membership(kRun, kLease);
  const Identity worker = Join(membership, WorkerId{0}, At(0));
  const auto left = [&](double seconds) {
    return membership.LeaseLeft(membership.workers().at(worker.worker), At(seconds));
  };
  const absl::Duration late = kLease - absl::Seconds(1);
  const double at = absl::ToDoubleSeconds(late);

  membership.RenewByPush(worker.worker, worker.incarnation, WorkerClock{1}, At(at));
  EXPECT_EQ(left(at), kLease);

  membership.RenewByPush(worker.worker, worker.incarnation, WorkerClock{1}, At(at + 1));
  EXPECT_EQ(left(at + 1), kLease - absl::Seconds(1)) << "the same push, in another report";
  membership.RenewByPush(worker.worker, Incarnation{Value(worker.incarnation) - 1}, WorkerClock{9},
                         At(at + 1));
  EXPECT_EQ(left(at + 1), kLease - absl::Seconds(1)) << "of an older incarnation";
}

TEST(MembershipTest, FirstViewHoldsAllLiveAsFoundingAndLaterOnesDoNot) {
  Membership membership(kRun, kLease);
  const Identity second = Join(membership, WorkerId{1}, At(0));
  const Identity first = Join(membership, WorkerId{0}, At(0));
  EXPECT_EQ(membership.view(), View{});

  membership.FoundView();
  const View founded = membership.view();
  const Identity late = Join(membership, WorkerId{7}, At(1));

  EXPECT_EQ(
      founded,
      (View{ViewNumber{1},
            {{first.worker, first.incarnation, true}, {second.worker, second.incarnation, true}}}));
  EXPECT_EQ(membership.view(), (View{ViewNumber{2},
                                     {{first.worker, first.incarnation, true},
                                      {second.worker, second.incarnation, true},
                                      {late.worker, late.incarnation, false}}}));
}

TEST(MembershipTest, KeepsWhatBecameOfWorkersThatAreGone) {
  Membership membership(kRun, kLease);
  const Identity clean = Join(membership, std::nullopt, At(0));
  const Identity failed = Join(membership, std::nullopt, At(0));

  membership.Leave(clean, "", At(1));
  membership.Leave(failed, "out of memory", At(1));

  EXPECT_EQ(membership.workers().at(clean.worker).state, Membership::State::kLeft);
  EXPECT_EQ(membership.workers().at(failed.worker).state, Membership::State::kDead);
  EXPECT_EQ(membership.workers().at(failed.worker).failure, "out of memory");
}

TEST(MembershipTest, CutsALongFailureBetweenCharacters) {
  Membership membership(kRun, kLease);
  const Identity worker = Join(membership, std::nullopt, At(0));
  std::string failure(Membership::kFailureBytesMax - 1, 'x');

  membership.Leave(worker, failure + "\xCE\xBB and more", At(1));

  EXPECT_EQ(membership.workers().at(worker.worker).failure, failure);
}

TEST(MembershipTest, TakesNoMoreThanThereIsMemoryForButEachAgain) {
  Membership membership(kRun, kLease);
  ASSERT_TRUE(membership.Register({.host = "a", .instance = 1}, At(0), 2).ok());
  const auto second = membership.Register({.host = "b", .instance = 2}, At(0), 2);
  ASSERT_TRUE(second.ok());

  const absl::Status refused = membership.Register({.host = "c"}, At(0), 2).status();

  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(refused.message(),
            "the servers have memory for the gradients of 2 workers, and 2 are there: use more "
            "servers, or wait until one has left");
  EXPECT_TRUE(membership.Register({.host = "b", .instance = 2}, At(0), 2).ok()) << "said again";
  EXPECT_TRUE(membership.Register({.worker = WorkerId{0}, .host = "a"}, At(0), 2).ok())
      << "started again";
  membership.Leave({kRun, second->worker, second->incarnation}, "", At(0));
  EXPECT_TRUE(membership.Register({.host = "c"}, At(0), 2).ok());
}

TEST(MembershipTest, RefusesIdsAndNamesOutOfBounds) {
  Membership membership(kRun, kLease);
  EXPECT_FALSE(membership.Register({.worker = WorkerId{kWorkersMax}}, At(0)).ok());
  EXPECT_FALSE(membership.Register({.host = std::string(257, 'h')}, At(0)).ok());
  for (const char* host : {"a worker=3", "a\nb", "\x1b[2J", "\xce\xbb"}) {
    EXPECT_FALSE(membership.Register({.host = host}, At(0)).ok()) << host;
  }

  for (uint32_t i = 0; i < kWorkersMax; ++i) {
    ASSERT_TRUE(membership.Register({.worker = WorkerId{i}}, At(0)).ok());
  }

  EXPECT_EQ(membership.Register({}, At(0)).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(MembershipTest, ViewsFollowTheLiveWorkersUnderRandomEvents) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomStream random(seed, 0);
    Membership membership(kRun, kLease);
    membership.FoundView();
    std::map<WorkerId, Identity> live;
    uint64_t highest = 0;

    for (int step = 0; step < 200; ++step) {
      const absl::Time now = At(step);
      const View before = membership.view();
      const uint32_t what = random.Below(4);
      if (what == 0) {
        const Identity made = Join(membership, WorkerId{random.Below(6)}, now);
        ASSERT_GT(Value(made.incarnation), highest);
        highest = Value(made.incarnation);
        live[made.worker] = made;
      } else if (what == 1 && !live.empty()) {
        membership.Leave(live.begin()->second, random.Below(2) == 0 ? "" : "broken", now);
        live.erase(live.begin());
      } else if (what == 2) {
        for (WorkerId died : membership.Expire(now)) ASSERT_EQ(live.erase(died), 1u);
      } else if (!live.empty()) {
        ASSERT_TRUE(membership.Renew(live.begin()->second, now).ok());
      }

      const View& view = membership.view();
      ASSERT_EQ(view.members.size(), live.size());
      for (const auto& [id, identity] : live) {
        ASSERT_EQ(view.Find(id)->incarnation, identity.incarnation);
      }
      ASSERT_EQ(view.number > before.number, view.members != before.members);
      ASSERT_EQ(membership.live(), live.size());
    }
  }
}

TEST(MembershipTest, AProcessThatAsksAgainGetsItsRegistrationBack) {
  Membership membership(kRun, kLease);
  const auto first = membership.Register({.host = "host", .instance = 9}, At(0));
  ASSERT_TRUE(first.ok() && !first->is_repeated);

  const auto again = membership.Register({.host = "host", .instance = 9}, At(4));

  ASSERT_TRUE(again.ok());
  EXPECT_TRUE(again->is_repeated);
  EXPECT_EQ(again->worker, first->worker);
  EXPECT_EQ(again->incarnation, first->incarnation);
  EXPECT_EQ(membership.live(), 1u) << "no ghost";
  EXPECT_TRUE(membership.Expire(At(8)).empty()) << "asking renews the lease";
}

TEST(MembershipTest, AProcessIsKnownAgainOnlyWhileItLivesAndUnderTheIdItAsksFor) {
  Membership membership(kRun, kLease);
  const auto first = membership.Register({.worker = WorkerId{3}, .instance = 9}, At(0));
  ASSERT_TRUE(first.ok());

  EXPECT_FALSE(membership.Register({.worker = WorkerId{4}, .instance = 9}, At(0))->is_repeated);
  EXPECT_FALSE(membership.Register({.worker = WorkerId{3}, .instance = 8}, At(0))->is_repeated);
  EXPECT_FALSE(membership.Register({}, At(0))->is_repeated);
  EXPECT_FALSE(membership.Register({}, At(0))->is_repeated) << "0 is no instance";
  membership.Expire(At(60));
  EXPECT_FALSE(membership.Register({.instance = 8}, At(60))->is_repeated) << "it was given up";
}

TEST(MembershipTest, AForgivenGapLengthensLeasesOnceAndNotBeyondNow) {
  Membership membership(kRun, kLease);
  Join(membership, WorkerId{0}, At(0));
  Join(membership, WorkerId{1}, At(4));

  membership.Forgive(absl::Seconds(100), At(104));

  EXPECT_TRUE(membership.Expire(At(104)).empty());
  EXPECT_EQ(membership.Expire(At(105.5)), std::vector<WorkerId>{WorkerId{0}});
  EXPECT_TRUE(membership.Expire(At(109)).empty());
  EXPECT_EQ(membership.Expire(At(109.5)), std::vector<WorkerId>{WorkerId{1}});
}

}  // namespace
}  // namespace slipstream
