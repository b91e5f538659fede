#include "server/core/outstanding_pulls.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace slipstream {
namespace {

constexpr WorkerId kWorker0{0};
constexpr WorkerId kWorker1{1};

std::vector<WorkerId> OlderThan(uint64_t version, const OutstandingPulls& pulls) {
  return pulls.Where([version](Version base) { return base < Version{version}; });
}

View ViewOf(uint64_t number, std::vector<Member> members) {
  return {.number = ViewNumber{number}, .members = std::move(members)};
}

TEST(OutstandingPullsTest, FindsWhoBringsAGradientOfAnOldVersion) {
  OutstandingPulls pulls;
  pulls.Add(kWorker1, 0, Version{4});
  pulls.Add(kWorker0, 0, Version{6});

  EXPECT_TRUE(OlderThan(4, pulls).empty());
  EXPECT_EQ(OlderThan(5, pulls), std::vector{kWorker1});
  EXPECT_EQ(OlderThan(7, pulls), (std::vector{kWorker0, kWorker1}));
}

TEST(OutstandingPullsTest, NamesAWorkerOnceForItsOldestGradient) {
  OutstandingPulls pulls;
  pulls.Add(kWorker0, 0, Version{6});
  pulls.Add(kWorker0, 1, Version{4});

  EXPECT_EQ(OlderThan(5, pulls), std::vector{kWorker0});
  EXPECT_EQ(OlderThan(7, pulls), std::vector{kWorker0});
}

TEST(OutstandingPullsTest, KeepsTheOlderOfTwoAnswersToOnePull) {
  OutstandingPulls pulls;
  pulls.Add(kWorker0, 0, Version{4});
  pulls.Add(kWorker0, 0, Version{6});
  EXPECT_EQ(pulls.Find(kWorker0, 0), Version{4});

  pulls.Add(kWorker0, 0, Version{3});
  EXPECT_EQ(pulls.Find(kWorker0, 0), Version{3});
}

TEST(OutstandingPullsTest, SettlesOneSlotAndNoOther) {
  OutstandingPulls pulls;
  pulls.Add(kWorker0, 0, Version{4});
  pulls.Add(kWorker0, 1, Version{4});

  pulls.Settle(kWorker0, 1);

  EXPECT_EQ(pulls.Find(kWorker0, 1), std::nullopt);
  EXPECT_EQ(pulls.Find(kWorker0, 0), Version{4});
  EXPECT_TRUE(pulls.HasBeside(kWorker0, 1));
  EXPECT_FALSE(pulls.HasBeside(kWorker0, 0));
  EXPECT_FALSE(pulls.HasBeside(kWorker1, 0));
}

TEST(OutstandingPullsTest, ForgetsWhoHasLeftAndPastLives) {
  OutstandingPulls pulls;
  const View before = ViewOf(1, {{kWorker0, Incarnation{1}}, {kWorker1, Incarnation{2}}});
  for (const WorkerId worker : {kWorker0, kWorker1}) pulls.Add(worker, 0, Version{4});
  const View same = ViewOf(2, before.members);
  pulls.KeepMembers(before, same);
  EXPECT_EQ(OlderThan(5, pulls), (std::vector{kWorker0, kWorker1}));

  const View back = ViewOf(3, {{kWorker0, Incarnation{3}}, {kWorker1, Incarnation{2}}});
  pulls.KeepMembers(same, back);
  EXPECT_EQ(OlderThan(5, pulls), std::vector{kWorker1});

  pulls.KeepMembers(back, ViewOf(4, {{kWorker0, Incarnation{3}}}));
  EXPECT_TRUE(OlderThan(5, pulls).empty());
}

}  // namespace
}  // namespace slipstream
