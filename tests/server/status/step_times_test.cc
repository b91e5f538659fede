#include "server/status/step_times.h"

#include <gtest/gtest.h>

namespace slipstream {
namespace {

constexpr WorkerId kAda{0};
constexpr WorkerId kBob{1};

absl::Time At(int64_t milliseconds) { return absl::UnixEpoch() + absl::Milliseconds(milliseconds); }

View ViewOf(std::initializer_list<Member> members) {
  View view;
  view.members = members;
  return view;
}

View Both() { return ViewOf({{kAda, Incarnation{1}, true}, {kBob, Incarnation{2}, true}}); }

TEST(StepTimesTest, AStepIsFromTheWeightsToTheGradientComputedFromThem) {
  StepTimes times;
  times.OnView(Both(), At(0));
  times.OnServed(kAda, Version{0}, At(100));
  times.OnGradient(kAda, Version{0}, At(130));
  // The time during which the worker waits for its answer does not count as its own.
  times.OnServed(kAda, Version{1}, At(1000));
  times.OnGradient(kAda, Version{1}, At(1030));

  const StepTimes::Pace pace = times.Paces(At(5000)).at(kAda);

  EXPECT_EQ(pace.steps, 2u);
  EXPECT_EQ(pace.step, absl::Milliseconds(30));
  EXPECT_EQ(pace.holding, absl::ZeroDuration());
}

TEST(StepTimesTest, OneHiccupDoesNotMakeAStepLong) {
  StepTimes times;
  times.OnView(Both(), At(0));
  int64_t now = 0;
  for (uint64_t step = 0; step < 9; ++step) {
    times.OnServed(kAda, Version{step}, At(now));
    now += step == 4 ? 10'000 : 20;
    times.OnGradient(kAda, Version{step}, At(now));
  }

  EXPECT_EQ(times.Paces(At(now)).at(kAda).step, absl::Milliseconds(20));
}

TEST(StepTimesTest, OldStepsLeaveTheWindow) {
  StepTimes times;
  times.OnView(Both(), At(0));
  int64_t now = 0;
  for (uint64_t step = 0; step < 3 * StepTimes::kWindowSteps; ++step) {
    times.OnServed(kAda, Version{step}, At(now));
    now += step < 2 * StepTimes::kWindowSteps ? 500 : 20;
    times.OnGradient(kAda, Version{step}, At(now));
  }

  EXPECT_EQ(times.Paces(At(now)).at(kAda).step, absl::Milliseconds(20));
  EXPECT_EQ(times.Paces(At(now)).at(kAda).steps, 3 * StepTimes::kWindowSteps);
}

TEST(StepTimesTest, HoldsTheOldestWeightsItHasNotAnswered) {
  StepTimes times;
  times.OnView(Both(), At(0));
  times.OnServed(kAda, Version{3}, At(100));
  times.OnServed(kAda, Version{3}, At(400));  // The answer was lost, and requested again.
  times.OnServed(kAda, Version{5}, At(300));  // A prefetched version.

  EXPECT_EQ(times.Paces(At(1000)).at(kAda).holding, absl::Milliseconds(900));
  times.OnGradient(kAda, Version{3}, At(1000));
  EXPECT_EQ(times.Paces(At(1000)).at(kAda).holding, absl::Milliseconds(700));
  times.OnExcuse(kAda, Version{5});
  EXPECT_EQ(times.Paces(At(1000)).at(kAda).holding, absl::ZeroDuration());
  EXPECT_EQ(times.Paces(At(1000)).at(kAda).steps, 1u) << "an excuse is no step";
}

TEST(StepTimesTest, RemembersABoundedNumberOfVersions) {
  StepTimes times;
  times.OnView(Both(), At(0));
  for (uint64_t version = 0; version < 100; ++version) {
    times.OnServed(kAda, Version{version}, At(static_cast<int64_t>(version)));
  }

  EXPECT_EQ(times.Paces(At(100)).at(kAda).holding,
            absl::Milliseconds(static_cast<int64_t>(StepTimes::kVersionsKept)));
  times.OnGradient(kAda, Version{0}, At(100));
  EXPECT_EQ(times.Paces(At(100)).at(kAda).steps, 0u) << "it is not known when that step began";
}

TEST(StepTimesTest, ForgetsWhoIsNotInTheView) {
  StepTimes times;
  times.OnView(Both(), At(0));
  for (const WorkerId worker : {kAda, kBob}) {
    times.OnServed(worker, Version{0}, At(0));
    times.OnGradient(worker, Version{0}, At(20));
    times.OnServed(worker, Version{1}, At(20));
  }

  times.OnView(ViewOf({{kAda, Incarnation{7}, false}}), At(0));

  const auto paces = times.Paces(At(1000));
  ASSERT_EQ(paces.size(), 1u);
  EXPECT_EQ(paces.at(kAda).steps, 0u) << "another incarnation starts afresh";
  EXPECT_EQ(paces.at(kAda).holding, absl::ZeroDuration());
  times.OnServed(kBob, Version{2}, At(1000));
  EXPECT_EQ(times.Paces(At(1000)).size(), 1u);
}

TEST(StepTimesTest, AMemberIsIdleFromItsLastActUnlessItWaitsForAnAnswer) {
  StepTimes times;
  times.OnView(Both(), At(0));
  const auto idle = [&times](int64_t now) { return times.Paces(At(now)).at(kAda).idle; };
  EXPECT_EQ(idle(700), absl::Milliseconds(700)) << "it joined, and has never fetched";

  times.OnAsked(kAda, At(800));
  EXPECT_EQ(idle(2000), absl::ZeroDuration());
  times.OnServed(kAda, Version{0}, At(2000));
  EXPECT_EQ(idle(2100), absl::Milliseconds(100));
  times.OnGradient(kAda, Version{0}, At(2200));
  times.OnPushed(kAda, At(2200));
  EXPECT_EQ(idle(2300), absl::Milliseconds(100)) << "a push that asks for no weights";
}

}  // namespace
}  // namespace slipstream
