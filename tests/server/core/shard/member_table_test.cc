#include "server/core/shard/member_table.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/base/philox.h"
#include "server/core/shard/unknown_members.h"

namespace slipstream {
namespace {

using Verdict = MemberTable::Verdict;

PushReply ReplyNamed(uint64_t version) {
  return {.outcome = PushOutcome::kApplied, .version = Version{version}, .staleness = version % 7};
}

View ViewOf(uint64_t number, std::vector<std::pair<uint32_t, uint64_t>> members) {
  View view{.number = ViewNumber{number}};
  for (const auto& [worker, incarnation] : members) {
    view.members.push_back({.worker = WorkerId{worker}, .incarnation = Incarnation{incarnation}});
  }
  return view;
}

class MemberTableTest : public testing::Test {
 protected:
  Verdict Check(uint32_t worker, uint64_t incarnation, uint64_t sequence) const {
    return table_.Check(WorkerId{worker}, Incarnation{incarnation}, Sequence{sequence});
  }
  Verdict CheckMember(uint32_t worker, uint64_t incarnation) const {
    return table_.CheckMember(WorkerId{worker}, Incarnation{incarnation});
  }
  void Record(uint32_t worker, uint64_t sequence, uint64_t checksum) {
    table_.At(WorkerId{worker}).RecordAnswer(Sequence{sequence}, checksum, ReplyNamed(sequence));
  }

  /// Does one of the things to a member that the table counts.
  void ChangeOne(WorkerId worker, uint32_t slot, uint64_t number, RandomStream& random) {
    switch (random.Below(7)) {
      case 0:
        return table_.KeepPace(worker, WorkerClock{number});
      case 1:
        return table_.Rest(worker);
      case 2:
        return table_.AddBase(worker, slot, Version{number});
      case 3:
        return table_.SettleBase(worker, slot, Version{number});
      case 4:
        return table_.EndBase(worker, slot);
      default:
        return table_.Give(worker, slot, Version{number});
    }
  }

  MemberTable table_;
};

TEST_F(MemberTableTest, KnowsNobodyBeforeTheFirstView) {
  EXPECT_EQ(CheckMember(0, 1), Verdict::kUnknownMember);
  EXPECT_EQ(Check(0, 1, 1), Verdict::kUnknownMember);
}

TEST_F(MemberTableTest, ExpectsSequencesFromOneWithoutGaps) {
  table_.InstallView(ViewOf(1, {{0, 1}}));

  EXPECT_EQ(table_.At(WorkerId{0}).expected(), Sequence{1});
  EXPECT_EQ(Check(0, 1, 1), Verdict::kFresh);
  EXPECT_EQ(Check(0, 1, 2), Verdict::kGap);

  Record(0, 1, 100);

  EXPECT_EQ(table_.At(WorkerId{0}).expected(), Sequence{2});
  EXPECT_EQ(Check(0, 1, 1), Verdict::kRepeated);
  EXPECT_EQ(Check(0, 1, 2), Verdict::kFresh);
  EXPECT_EQ(Check(0, 1, 3), Verdict::kGap);
}

TEST_F(MemberTableTest, FindsTheFirstAnswerWithTheChecksumOfItsPayload) {
  table_.InstallView(ViewOf(1, {{0, 1}}));
  Record(0, 1, 100);

  const MemberRecord::Answer* answer = table_.At(WorkerId{0}).FindAnswer(Sequence{1});

  ASSERT_NE(answer, nullptr);
  EXPECT_EQ(answer->checksum, 100u);
  EXPECT_EQ(answer->reply, ReplyNamed(1));
}

TEST_F(MemberTableTest, KeepsTheAnswersToTheLastFewPushes) {
  table_.InstallView(ViewOf(1, {{0, 1}}));
  const uint64_t pushes = MemberRecord::kAnswersKept + 3;
  for (uint64_t sequence = 1; sequence <= pushes; ++sequence) Record(0, sequence, 100 + sequence);

  for (uint64_t sequence = 1; sequence <= 3; ++sequence) {
    EXPECT_EQ(Check(0, 1, sequence), Verdict::kTooOld) << sequence;
  }
  for (uint64_t sequence = 4; sequence <= pushes; ++sequence) {
    ASSERT_EQ(Check(0, 1, sequence), Verdict::kRepeated) << sequence;
    EXPECT_EQ(table_.At(WorkerId{0}).FindAnswer(Sequence{sequence})->checksum, 100 + sequence);
  }
}

TEST_F(MemberTableTest, FencesTheOldIncarnationAndStartsTheNewOneAtOne) {
  table_.InstallView(ViewOf(1, {{0, 1}}));
  Record(0, 1, 100);
  Record(0, 2, 100);

  table_.InstallView(ViewOf(2, {{0, 2}}));

  EXPECT_EQ(CheckMember(0, 1), Verdict::kFenced);
  EXPECT_EQ(Check(0, 1, 3), Verdict::kFenced);
  EXPECT_EQ(Check(0, 1, 1), Verdict::kFenced);  // Not even repetitions are answered.
  EXPECT_EQ(Check(0, 2, 1), Verdict::kFresh);
  EXPECT_EQ(Check(0, 2, 2), Verdict::kGap);
}

TEST_F(MemberTableTest, KeepsSequencesOfMembersThatStay) {
  table_.InstallView(ViewOf(1, {{0, 1}, {1, 2}}));
  Record(0, 1, 100);

  table_.InstallView(ViewOf(2, {{0, 1}, {2, 3}}));

  EXPECT_EQ(table_.At(WorkerId{0}).expected(), Sequence{2});
  EXPECT_EQ(Check(0, 1, 1), Verdict::kRepeated);
}

TEST_F(MemberTableTest, FencesWhoHasLeft) {
  table_.InstallView(ViewOf(1, {{0, 1}, {1, 2}}));
  table_.InstallView(ViewOf(2, {{0, 1}}));

  EXPECT_EQ(CheckMember(1, 2), Verdict::kFenced);
  EXPECT_EQ(Check(1, 2, 1), Verdict::kFenced);
}

TEST_F(MemberTableTest, DoesNotFenceWhoIsNewerThanItsView) {
  table_.InstallView(ViewOf(1, {{0, 1}, {1, 2}}));

  EXPECT_EQ(CheckMember(0, 3), Verdict::kUnknownMember);  // Worker 0 has registered again.
  EXPECT_EQ(CheckMember(7, 3), Verdict::kUnknownMember);  // Worker 7 has just joined.
}

TEST_F(MemberTableTest, KeepsTheOlderBaseOfTwoAnswersToOnePull) {
  MemberRecord record;
  record.AddBase(0, Version{4});
  record.AddBase(0, Version{6});
  EXPECT_EQ(record.FindBase(0), Version{4});

  record.AddBase(0, Version{3});
  EXPECT_EQ(record.FindBase(0), Version{3});
  EXPECT_EQ(record.FindBase(1), std::nullopt);
}

TEST_F(MemberTableTest, TellsGradientsOnTheirWayApartBySlot) {
  MemberRecord record;
  record.AddBase(1, Version{4});

  EXPECT_TRUE(record.HasBaseBeside(0));
  EXPECT_FALSE(record.HasBaseBeside(1));

  record.AddBase(0, Version{5});

  EXPECT_TRUE(record.HasBaseBeside(1));
}

TEST_F(MemberTableTest, CountsWhatAScanOfItsRecordsFinds) {
  RandomStream random(1, 1);
  constexpr uint32_t kSlots = 2;
  std::set<Version> released;
  for (uint64_t step = 0; step < 3'000; ++step) {
    const std::vector<Version> given = table_.VersionsGiven();
    if (step % 50 == 0) {
      View view{.number = ViewNumber{step + 1}};
      for (uint32_t worker = 0; worker < 8; ++worker) {
        const Incarnation incarnation{1 + (step + worker) / 200};
        if (random.Below(8) > 0) view.members.push_back({WorkerId{worker}, incarnation});
      }
      table_.InstallView(view);
    } else {
      const Member& member =
          table_.view().members[random.Below(static_cast<uint32_t>(table_.view().members.size()))];
      ChangeOne(member.worker, random.Below(kSlots), random.Below(9), random);
    }
    table_.CheckInvariants(kSlots);
    for (const Version version : given) released.insert(version);
    for (const Version version : table_.VersionsGiven()) released.erase(version);
    if (random.Below(5) > 0) continue;
    ASSERT_EQ(table_.TakeReleased(), released);
    released.clear();
  }
}

TEST_F(MemberTableTest, FindsMembersByTheirRecordInOrderOfIds) {
  table_.InstallView(ViewOf(1, {{0, 1}, {1, 2}, {2, 3}}));
  for (const uint32_t worker : {2, 0}) table_.AddBase(WorkerId{worker}, 0, Version{4});

  EXPECT_EQ(
      table_.Where([](const MemberRecord& record) { return record.FindBase(0) == Version{4}; }),
      (std::vector{WorkerId{0}, WorkerId{2}}));
}

TEST_F(MemberTableTest, ARecordEndsWithItsIncarnation) {
  table_.InstallView(ViewOf(1, {{0, 1}, {1, 2}}));
  for (const uint32_t worker : {0, 1}) {
    table_.AddBase(WorkerId{worker}, 0, Version{4});
    MemberRecord& record = table_.At(WorkerId{worker});
    record.owes_from = Version{4};
    record.newest.batch_end = 8;
    record.pushes_arriving = 1;
  }

  table_.InstallView(ViewOf(2, {{0, 3}, {1, 2}}));

  const MemberRecord& back = table_.At(WorkerId{0});
  EXPECT_EQ(back.FindBase(0), std::nullopt);
  EXPECT_EQ(back.owes_from, std::nullopt);
  EXPECT_EQ(back.newest.batch_end, 0u);
  EXPECT_EQ(back.pushes_arriving, 0u);
  const MemberRecord& stayed = table_.At(WorkerId{1});
  EXPECT_EQ(stayed.FindBase(0), Version{4});
  EXPECT_EQ(stayed.owes_from, Version{4});
  EXPECT_EQ(stayed.newest.batch_end, 8u);
  EXPECT_EQ(stayed.pushes_arriving, 1u);
  EXPECT_EQ(table_.Find(WorkerId{0}, Incarnation{1}), nullptr);
}

TEST_F(MemberTableTest, FoundingMembersOweFromTheFirstVersion) {
  View view = ViewOf(1, {{0, 1}, {1, 2}});
  view.members[0].founding = true;

  table_.InstallView(view);

  EXPECT_EQ(table_.At(WorkerId{0}).owes_from, Version{});
  EXPECT_EQ(table_.At(WorkerId{1}).owes_from, std::nullopt);
}

TEST_F(MemberTableTest, CountsThePullsOfPastLivesUntilTheyEnd) {
  table_.InstallView(ViewOf(1, {{0, 1}}));
  table_.BeginPull(WorkerId{0}, Incarnation{1});

  table_.InstallView(ViewOf(2, {{0, 2}}));

  EXPECT_EQ(table_.PullsOf(WorkerId{0}, Incarnation{1}), 1u);
  EXPECT_EQ(table_.PullsOf(WorkerId{0}, Incarnation{2}), 0u);
  table_.BeginPull(WorkerId{0}, Incarnation{2});
  EXPECT_EQ(table_.pulls_under_way(), 2u);
  table_.CheckInvariants(/*gradients_in_flight=*/1);

  table_.EndPull(WorkerId{0}, Incarnation{1});
  table_.EndPull(WorkerId{0}, Incarnation{2});

  EXPECT_EQ(table_.pulls_under_way(), 0u);
  table_.CheckInvariants(/*gradients_in_flight=*/1);
}

// Keeps everything ever recorded in lists, and searches them from the start each time.
class NaiveTable {
 public:
  void InstallView(const View& view) {
    view_ = view;
    for (const Member& member : view.members) newest_ = std::max(newest_, member.incarnation);
  }
  Verdict CheckMember(WorkerId worker, Incarnation incarnation) const {
    const Member* member = view_.Find(worker);
    if (member != nullptr && member->incarnation == incarnation) return Verdict::kFresh;
    return incarnation > newest_ ? Verdict::kUnknownMember : Verdict::kFenced;
  }
  Verdict Check(WorkerId worker, Incarnation incarnation, uint64_t sequence) const {
    if (const Verdict verdict = CheckMember(worker, incarnation); verdict != Verdict::kFresh) {
      return verdict;
    }
    const uint64_t last = checksums(incarnation).size();
    if (sequence > last + 1) return Verdict::kGap;
    if (sequence == last + 1) return Verdict::kFresh;
    return sequence + MemberRecord::kAnswersKept > last ? Verdict::kRepeated : Verdict::kTooOld;
  }
  void Record(Incarnation incarnation, uint64_t checksum) {
    recorded_[incarnation].push_back(checksum);
  }
  std::vector<uint64_t> checksums(Incarnation incarnation) const {
    const auto found = recorded_.find(incarnation);
    return found == recorded_.end() ? std::vector<uint64_t>{} : found->second;
  }

 private:
  View view_;
  Incarnation newest_{};
  std::map<Incarnation, std::vector<uint64_t>> recorded_;
};

View RandomView(RandomStream& random, const View& before, uint64_t* last_incarnation) {
  View view{.number = ViewNumber{Value(before.number) + 1}};
  for (uint32_t worker = 0; worker < 5; ++worker) {
    const Member* member = before.Find(WorkerId{worker});
    const uint32_t fate = random.Below(6);
    if (member != nullptr && fate > 1) {
      view.members.push_back(*member);
    } else if (fate != 0) {
      view.members.push_back(
          {.worker = WorkerId{worker}, .incarnation = Incarnation{++*last_incarnation}});
    }
  }
  return view;
}

TEST(MemberTablePropertyTest, AgreesWithAListOfEverythingRecorded) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomStream random(seed, 1);
    MemberTable table;
    NaiveTable naive;
    View view;
    uint64_t last_incarnation = 0;

    for (int step = 0; step < 600; ++step) {
      if (random.Below(40) == 0) {
        view = RandomView(random, view, &last_incarnation);
        table.InstallView(view);
        naive.InstallView(view);
      }
      const WorkerId worker{random.Below(6)};
      const Member* member = view.Find(worker);
      const Incarnation incarnation =
          member != nullptr && random.Below(4) != 0
              ? member->incarnation
              : Incarnation{1 + random.Below(static_cast<uint32_t>(last_incarnation) + 3)};
      const uint64_t next = naive.checksums(incarnation).size() + 1;
      const uint64_t sequence = random.Below(2) == 0 ? next : 1 + random.Below(20);

      const Verdict verdict = table.Check(worker, incarnation, Sequence{sequence});

      ASSERT_EQ(verdict, naive.Check(worker, incarnation, sequence)) << "step " << step;
      ASSERT_EQ(table.CheckMember(worker, incarnation), naive.CheckMember(worker, incarnation));
      if (verdict == Verdict::kFresh) {
        ASSERT_EQ(table.At(worker).expected(), Sequence{sequence});
        const uint64_t checksum = random.Below(3);
        table.At(worker).RecordAnswer(Sequence{sequence}, checksum, ReplyNamed(sequence));
        naive.Record(incarnation, checksum);
      } else if (verdict == Verdict::kRepeated) {
        const MemberRecord::Answer* answer = table.At(worker).FindAnswer(Sequence{sequence});
        ASSERT_EQ(answer->checksum, naive.checksums(incarnation)[sequence - 1]) << "step " << step;
        ASSERT_EQ(answer->reply, ReplyNamed(sequence));
      }
      table.CheckInvariants(/*gradients_in_flight=*/1);
    }
  }
}

}  // namespace

namespace {

TEST(UnknownMembersTest, OnlyAnAnswerToAQuestionAskedLaterTells) {
  UnknownMembers unknown;
  unknown.OnAsked();
  EXPECT_FALSE(unknown.IsMadeUp(Incarnation{9}));

  unknown.OnAnswered();
  EXPECT_FALSE(unknown.IsMadeUp(Incarnation{9})) << "what was asked before may not have it";
  unknown.OnAsked();
  EXPECT_FALSE(unknown.IsMadeUp(Incarnation{9}));
  unknown.OnAnswered();

  EXPECT_TRUE(unknown.IsMadeUp(Incarnation{9}));
  EXPECT_FALSE(unknown.IsMadeUp(Incarnation{10})) << "it is heard of for the first time";
}

TEST(UnknownMembersTest, AQuestionThatFailedTellsNothing) {
  UnknownMembers unknown;
  EXPECT_FALSE(unknown.IsMadeUp(Incarnation{9}));
  unknown.OnAsked();  // The question is not answered.
  unknown.OnAsked();
  EXPECT_FALSE(unknown.IsMadeUp(Incarnation{9}));
  unknown.OnAnswered();
  EXPECT_TRUE(unknown.IsMadeUp(Incarnation{9}));
}

TEST(UnknownMembersTest, RemembersSoMany) {
  UnknownMembers unknown;
  for (uint64_t i = 0; i <= UnknownMembers::kMost; ++i) unknown.IsMadeUp(Incarnation{100 + i});
  unknown.OnAsked();
  unknown.OnAnswered();

  EXPECT_FALSE(unknown.IsMadeUp(Incarnation{100})) << "the one that was forgotten";
  EXPECT_TRUE(unknown.IsMadeUp(Incarnation{100 + UnknownMembers::kMost}));
}

}  // namespace

}  // namespace slipstream
