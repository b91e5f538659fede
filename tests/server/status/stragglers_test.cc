#include "server/status/stragglers.h"

#include <gtest/gtest.h>

#include <vector>

namespace slipstream {
namespace {

/// Returns a worker that has made `steps` steps of this many milliseconds each.
WorkerPace Steady(uint32_t worker, int64_t milliseconds, uint64_t steps = 100) {
  WorkerPace pace;
  pace.worker = WorkerId{worker};
  pace.steps = steps;
  pace.step = absl::Milliseconds(milliseconds);
  return pace;
}

WorkerPace Holding(uint32_t worker, int64_t milliseconds, absl::Duration holding) {
  WorkerPace pace = Steady(worker, milliseconds);
  pace.holding = holding;
  return pace;
}

/// Returns the stragglers as "1 3".
std::string Who(const std::vector<WorkerPace>& workers) {
  std::string text;
  for (const auto& [worker, reason] : FindStragglers(workers)) {
    text += (text.empty() ? "" : " ") + std::to_string(Value(worker));
  }
  return text;
}

TEST(StragglersTest, AreTwiceAsSlowAsTheMedian) {
  EXPECT_EQ(Who({Steady(0, 100), Steady(1, 110), Steady(2, 90), Steady(3, 201)}), "3");
  EXPECT_EQ(Who({Steady(0, 100), Steady(1, 100), Steady(2, 100), Steady(3, 200)}), "");
  EXPECT_EQ(Who({Steady(0, 100), Steady(1, 500), Steady(2, 100), Steady(3, 500)}), "1 3");
  EXPECT_EQ(Who({}), "");
}

TEST(StragglersTest, OneOfTwoCanBeSlowButOneAloneCannot) {
  EXPECT_EQ(Who({Steady(0, 100), Steady(1, 300)}), "1");
  EXPECT_EQ(Who({Steady(0, 300)}), "");
}

TEST(StragglersTest, AFewStepsSayNothing) {
  EXPECT_EQ(Who({Steady(0, 100), Steady(1, 100), Steady(2, 900, kStepsMin - 1)}), "");
  EXPECT_EQ(Who({Steady(0, 100), Steady(1, 100), Steady(2, 900, kStepsMin)}), "2");
  EXPECT_EQ(Who({Steady(0, 100), Steady(1, 900, kStepsMin - 1)}), "") << "there is no measure";
}

TEST(StragglersTest, AreSilentForThreeStepsAndASecond) {
  const WorkerPace other = Steady(0, 500);
  EXPECT_EQ(Who({other, Steady(1, 500), Holding(2, 500, absl::Milliseconds(1501))}), "2");
  EXPECT_EQ(Who({other, Steady(1, 500), Holding(2, 500, absl::Milliseconds(1499))}), "");
  const WorkerPace quick = Steady(0, 2);
  EXPECT_EQ(Who({quick, Steady(1, 2), Holding(2, 2, absl::Milliseconds(999))}), "")
      << "a pause between two reports";
  EXPECT_EQ(Who({quick, Steady(1, 2), Holding(2, 2, absl::Milliseconds(1001))}), "2");
}

TEST(StragglersTest, AWorkerThatNeverPushedCanBeSilent) {
  WorkerPace fresh;
  fresh.worker = WorkerId{2};
  fresh.holding = absl::Seconds(20);

  EXPECT_EQ(Who({Steady(0, 100), Steady(1, 100), fresh}), "2");
}

TEST(StragglersTest, AWorkerWithoutWorkOwesNothing) {
  WorkerPace idle = Holding(2, 100, absl::Seconds(20));
  idle.owes_gradient = false;

  EXPECT_EQ(Who({Steady(0, 100), Steady(1, 100), idle}), "");
}

TEST(StragglersTest, SayWhy) {
  const std::vector<WorkerPace> workers = {Steady(0, 170), Steady(1, 170), Steady(2, 520),
                                           Holding(3, 170, absl::Milliseconds(4200))};

  const auto stragglers = FindStragglers(workers);

  EXPECT_EQ(stragglers.at(WorkerId{2}), "its steps take 520 ms, 3.1 times the median of 170 ms");
  EXPECT_EQ(stragglers.at(WorkerId{3}),
            "has not pushed for 4.2 s, where the median step takes 170 ms");
}

}  // namespace
}  // namespace slipstream
