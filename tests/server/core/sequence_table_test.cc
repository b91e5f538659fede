#include "server/core/sequence_table.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/base/philox.h"

namespace slipstream {
namespace {

using Verdict = SequenceTable::Verdict;

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

class SequenceTableTest : public testing::Test {
 protected:
  Verdict Check(uint32_t worker, uint64_t incarnation, uint64_t sequence) const {
    return table_.Check(WorkerId{worker}, Incarnation{incarnation}, Sequence{sequence});
  }
  Verdict CheckMember(uint32_t worker, uint64_t incarnation) const {
    return table_.CheckMember(WorkerId{worker}, Incarnation{incarnation});
  }
  void Record(uint32_t worker, uint64_t sequence, uint64_t checksum) {
    table_.Record(WorkerId{worker}, Sequence{sequence}, checksum, ReplyNamed(sequence));
  }

  SequenceTable table_;
};

TEST_F(SequenceTableTest, KnowsNobodyBeforeTheFirstView) {
  EXPECT_EQ(CheckMember(0, 1), Verdict::kUnknownMember);
  EXPECT_EQ(Check(0, 1, 1), Verdict::kUnknownMember);
}

TEST_F(SequenceTableTest, ExpectsSequencesFromOneWithoutGaps) {
  table_.InstallView(ViewOf(1, {{0, 1}}));

  EXPECT_EQ(table_.Expected(WorkerId{0}), Sequence{1});
  EXPECT_EQ(Check(0, 1, 1), Verdict::kFresh);
  EXPECT_EQ(Check(0, 1, 2), Verdict::kGap);

  Record(0, 1, 100);

  EXPECT_EQ(table_.Expected(WorkerId{0}), Sequence{2});
  EXPECT_EQ(Check(0, 1, 1), Verdict::kRepeated);
  EXPECT_EQ(Check(0, 1, 2), Verdict::kFresh);
  EXPECT_EQ(Check(0, 1, 3), Verdict::kGap);
}

TEST_F(SequenceTableTest, FindsTheFirstAnswerOnlyForTheSamePayload) {
  table_.InstallView(ViewOf(1, {{0, 1}}));
  Record(0, 1, 100);

  const PushReply* answer = table_.FindAnswer(WorkerId{0}, Sequence{1}, 100);

  ASSERT_NE(answer, nullptr);
  EXPECT_EQ(*answer, ReplyNamed(1));
  EXPECT_EQ(table_.FindAnswer(WorkerId{0}, Sequence{1}, 101), nullptr);
}

TEST_F(SequenceTableTest, KeepsTheAnswersToTheLastFewPushes) {
  table_.InstallView(ViewOf(1, {{0, 1}}));
  const uint64_t pushes = SequenceTable::kAnswersKept + 3;
  for (uint64_t sequence = 1; sequence <= pushes; ++sequence) Record(0, sequence, 100 + sequence);

  for (uint64_t sequence = 1; sequence <= 3; ++sequence) {
    EXPECT_EQ(Check(0, 1, sequence), Verdict::kTooOld) << sequence;
  }
  for (uint64_t sequence = 4; sequence <= pushes; ++sequence) {
    ASSERT_EQ(Check(0, 1, sequence), Verdict::kRepeated) << sequence;
    EXPECT_NE(table_.FindAnswer(WorkerId{0}, Sequence{sequence}, 100 + sequence), nullptr);
  }
}

TEST_F(SequenceTableTest, FencesTheOldIncarnationAndStartsTheNewOneAtOne) {
  table_.InstallView(ViewOf(1, {{0, 1}}));
  Record(0, 1, 100);
  Record(0, 2, 100);

  table_.InstallView(ViewOf(2, {{0, 2}}));

  EXPECT_EQ(CheckMember(0, 1), Verdict::kFenced);
  EXPECT_EQ(Check(0, 1, 3), Verdict::kFenced);
  EXPECT_EQ(Check(0, 1, 1), Verdict::kFenced);  // Not even its repetitions are answered.
  EXPECT_EQ(Check(0, 2, 1), Verdict::kFresh);
  EXPECT_EQ(Check(0, 2, 2), Verdict::kGap);
}

TEST_F(SequenceTableTest, KeepsSequencesOfMembersThatStay) {
  table_.InstallView(ViewOf(1, {{0, 1}, {1, 2}}));
  Record(0, 1, 100);

  table_.InstallView(ViewOf(2, {{0, 1}, {2, 3}}));

  EXPECT_EQ(table_.Expected(WorkerId{0}), Sequence{2});
  EXPECT_EQ(Check(0, 1, 1), Verdict::kRepeated);
}

TEST_F(SequenceTableTest, FencesWhoHasLeft) {
  table_.InstallView(ViewOf(1, {{0, 1}, {1, 2}}));
  table_.InstallView(ViewOf(2, {{0, 1}}));

  EXPECT_EQ(CheckMember(1, 2), Verdict::kFenced);
  EXPECT_EQ(Check(1, 2, 1), Verdict::kFenced);
}

TEST_F(SequenceTableTest, DoesNotFenceWhoIsNewerThanItsView) {
  table_.InstallView(ViewOf(1, {{0, 1}, {1, 2}}));

  EXPECT_EQ(CheckMember(0, 3), Verdict::kUnknownMember);  // Has registered again.
  EXPECT_EQ(CheckMember(7, 3), Verdict::kUnknownMember);  // Has just come.
}

// Everything ever recorded, in lists, searched from the start each time.
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
    return sequence + SequenceTable::kAnswersKept > last ? Verdict::kRepeated : Verdict::kTooOld;
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

TEST(SequenceTablePropertyTest, AgreesWithAListOfEverythingRecorded) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomStream random(seed, 1);
    SequenceTable table;
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
        ASSERT_EQ(table.Expected(worker), Sequence{sequence});
        const uint64_t checksum = random.Below(3);
        table.Record(worker, Sequence{sequence}, checksum, ReplyNamed(sequence));
        naive.Record(incarnation, checksum);
      } else if (verdict == Verdict::kRepeated) {
        const uint64_t checksum = random.Below(3);
        const PushReply* answer = table.FindAnswer(worker, Sequence{sequence}, checksum);
        const bool is_same = naive.checksums(incarnation)[sequence - 1] == checksum;
        ASSERT_EQ(answer != nullptr, is_same) << "step " << step;
        if (is_same) {
          ASSERT_EQ(*answer, ReplyNamed(sequence));
        }
      }
    }
  }
}

}  // namespace
}  // namespace slipstream
