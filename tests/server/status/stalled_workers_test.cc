#include "server/status/stalled_workers.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace slipstream {
namespace {

constexpr WorkerId kAda{0};

absl::Time At(int64_t seconds) { return absl::UnixEpoch() + absl::Seconds(seconds); }

/// Drives one worker, whose act is as old as is said.
class StalledWorkersTest : public testing::Test {
 protected:
  /// Returns "stalled 31", "goes on 40" or nothing for the worker whose last act was at `last_act`.
  std::string Look(int64_t now, int64_t last_act) {
    sign_.last_act = At(last_act);
    const std::vector<StalledWorkers::Change> changes = workers_.Update({&sign_, 1}, At(now));
    if (changes.empty()) return "";
    return (changes[0].is_stalled ? "stalled " : "goes on ") +
           std::to_string(absl::ToInt64Seconds(changes[0].idle));
  }

  StalledWorkers workers_{{.idle_min = absl::Seconds(30), .first_idle_max = absl::Seconds(120)}};
  StalledWorkers::Sign sign_ = {
      .worker = kAda, .incarnation = Incarnation{1}, .last_act = {}, .has_pushed = true};
};

TEST_F(StalledWorkersTest, NamesAWorkerOnceAndSaysWhenItGoesOn) {
  EXPECT_EQ(Look(0, 0), "");
  EXPECT_EQ(Look(30, 0), "");
  EXPECT_EQ(Look(31, 0), "stalled 31");
  EXPECT_EQ(Look(50, 0), "");
  EXPECT_TRUE(workers_.IsStalled(kAda));
  EXPECT_EQ(workers_.IdleFor(kAda, At(50)), absl::Seconds(50));

  EXPECT_EQ(Look(60, 60), "goes on 60");

  EXPECT_FALSE(workers_.IsStalled(kAda));
}

TEST_F(StalledWorkersTest, ALongPauseOfItsOwnIsUsualFromThenOn) {
  Look(0, 0);
  Look(20, 20);
  EXPECT_EQ(Look(61, 20), "stalled 41");
  EXPECT_EQ(Look(70, 70), "goes on 50");

  EXPECT_EQ(Look(169, 70), "") << "up to twice as long as before";
  EXPECT_EQ(Look(171, 70), "stalled 101");
}

TEST_F(StalledWorkersTest, TheFirstStepMayTakeLonger) {
  sign_.has_pushed = false;
  Look(0, 0);

  EXPECT_EQ(Look(120, 0), "");
  EXPECT_EQ(Look(121, 0), "stalled 121");
}

TEST_F(StalledWorkersTest, MeasuringTheWeightsMayTakeLonger) {
  Look(0, 0);
  sign_.measures = true;
  EXPECT_EQ(Look(100, 0), "");
  sign_.measures = false;
  EXPECT_EQ(Look(101, 100), "");
  EXPECT_EQ(Look(102, 100), "");
}

TEST_F(StalledWorkersTest, AnotherProcessInItsPlaceBeginsAnew) {
  Look(0, 0);
  Look(31, 0);
  sign_.incarnation = Incarnation{2};

  EXPECT_EQ(Look(32, 0), "");
  EXPECT_FALSE(workers_.IsStalled(kAda));
}

TEST_F(StalledWorkersTest, WhoHasNothingToDoIsForgotten) {
  Look(0, 0);
  Look(31, 0);

  EXPECT_TRUE(workers_.Update({}, At(32)).empty());

  EXPECT_FALSE(workers_.IsStalled(kAda));
  EXPECT_EQ(workers_.IdleFor(kAda, At(40)), absl::ZeroDuration());
}

}  // namespace
}  // namespace slipstream
