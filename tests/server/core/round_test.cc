#include "server/core/round.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "common/base/philox.h"
#include "server/core/round_work.h"

namespace slipstream {
namespace {

constexpr bool kSynchronous = true;
constexpr bool kAnyOrder = false;
constexpr bool kCloses = true;
constexpr bool kStaysOpen = false;

Round NewRound(bool synchronous) {
  if (synchronous) return Round(PolicyTraits::Order::kRank, PolicyTraits::Weighing::kExamples);
  return Round(PolicyTraits::Order::kArrival, PolicyTraits::Weighing::kEqual);
}

Round::Contribution From(uint32_t worker, uint32_t examples = 32, double scale = 1.0) {
  return {.push = PushId{100 + worker},
          .worker = WorkerId{worker},
          .base = Version{7},
          .examples = examples,
          .scale = scale};
}

std::vector<WorkerId> Workers(const std::vector<uint32_t>& ids) {
  std::vector<WorkerId> workers;
  for (uint32_t id : ids) workers.push_back(WorkerId{id});
  return workers;
}

// "+" stands for a fold that adds, "=" for the one that starts the sum.
std::string Text(const std::vector<Fold>& folds) {
  std::string text;
  for (const Fold& fold : folds) {
    text += (fold.first ? "=" : "+") + std::to_string(static_cast<uint64_t>(fold.push) - 100);
  }
  return text;
}

TEST(RoundTest, SynchronousFoldsThePrefixNobodyIsAwaitedInAndHoldsTheRest) {
  Round round = NewRound(kSynchronous);

  round.Add(From(2));
  EXPECT_EQ(Text(round.TakeFolds(Workers({0, 1, 3}), kStaysOpen)), "");
  round.Add(From(0));
  EXPECT_EQ(Text(round.TakeFolds(Workers({1, 3}), kStaysOpen)), "=0");
  round.Add(From(1));
  EXPECT_EQ(Text(round.TakeFolds(Workers({3}), kStaysOpen)), "+1+2");
  round.Add(From(3));
  EXPECT_EQ(Text(round.TakeFolds({}, kCloses)), "+3");

  EXPECT_DOUBLE_EQ(round.InverseDivisor(), 0.25);
}

TEST(RoundTest, AnExcuseLetsLaterWorkersBeFolded) {
  Round round = NewRound(kSynchronous);
  round.Add(From(1));
  EXPECT_EQ(Text(round.TakeFolds(Workers({0, 2}), kStaysOpen)), "");

  round.Excuse(WorkerId{0});

  EXPECT_TRUE(round.HasHeardFrom(WorkerId{0}));
  EXPECT_TRUE(round.HasHeardFrom(WorkerId{1}));
  EXPECT_FALSE(round.HasHeardFrom(WorkerId{2}));
  EXPECT_EQ(round.excused(), 1u);
  EXPECT_EQ(round.contributions(), 1u);
  EXPECT_EQ(Text(round.TakeFolds(Workers({2}), kStaysOpen)), "=1");
}

TEST(RoundTest, OtherRoundsFoldInOrderOfCompletionAtOnce) {
  Round round = NewRound(kAnyOrder);

  round.Add(From(5));
  EXPECT_EQ(Text(round.TakeFolds({}, kStaysOpen)), "=5");
  round.Add(From(1));
  EXPECT_EQ(Text(round.TakeFolds({}, kStaysOpen)), "+1");
  round.Add(From(3));
  EXPECT_EQ(Text(round.TakeFolds({}, kCloses)), "+3");

  EXPECT_NEAR(round.InverseDivisor(), 1.0 / 3, 1e-12);
}

TEST(RoundTest, SynchronousWeighsByExamples) {
  Round round = NewRound(kSynchronous);
  round.Add(From(0, 32));
  round.Add(From(1, 16));

  const std::vector<Fold> folds = round.TakeFolds({}, kCloses);

  ASSERT_EQ(folds.size(), 2u);
  EXPECT_FLOAT_EQ(folds[0].weight, 1.0f);
  EXPECT_FLOAT_EQ(folds[1].weight, 0.5f);
  EXPECT_DOUBLE_EQ(round.InverseDivisor(), 1 / 1.5);
}

TEST(RoundTest, OtherRoundsDivideByTheCountWhateverTheScales) {
  Round round = NewRound(kAnyOrder);
  round.Add(From(0, 32, 0.5));
  round.Add(From(1, 8, 0.25));

  const std::vector<Fold> folds = round.TakeFolds({}, kCloses);

  EXPECT_FLOAT_EQ(folds[0].weight, 0.5f);
  EXPECT_FLOAT_EQ(folds[1].weight, 0.25f);
  EXPECT_DOUBLE_EQ(round.InverseDivisor(), 0.5);
}

TEST(RoundTest, ASumIsDividedByNothingWhoeverContributes) {
  Round round(PolicyTraits::Order::kRank, PolicyTraits::Weighing::kSum);
  round.Add(From(0, 32));
  round.Add(From(1, 16));
  round.Excuse(WorkerId{2});

  const std::vector<Fold> folds = round.TakeFolds({}, kCloses);

  EXPECT_FLOAT_EQ(folds[0].weight, 1.0f);
  EXPECT_FLOAT_EQ(folds[1].weight, 1.0f);
  EXPECT_DOUBLE_EQ(round.InverseDivisor(), 1.0);
}

TEST(RoundTest, OneGradientAloneIsAppliedAsItIs) {
  for (const bool synchronous : {kSynchronous, kAnyOrder}) {
    Round round = NewRound(synchronous);
    round.Add(From(3, 7));

    const std::vector<Fold> folds = round.TakeFolds({}, kCloses);

    ASSERT_EQ(folds.size(), 1u);
    EXPECT_EQ(folds[0].weight, 1.0f);
    EXPECT_EQ(round.InverseDivisor(), 1.0);
  }
}

TEST(RoundTest, OneGradientAloneWeighsTheSameWheneverItIsFolded) {
  Round early = NewRound(kSynchronous);
  early.Add(From(0, 7));
  const std::vector<Fold> folded_at_once = early.TakeFolds(Workers({1}), kStaysOpen);
  early.Excuse(WorkerId{1});
  early.TakeFolds({}, kCloses);

  Round late = NewRound(kSynchronous);
  late.Excuse(WorkerId{1});
  late.Add(From(0, 7));

  EXPECT_EQ(folded_at_once, late.TakeFolds({}, kCloses));
  EXPECT_EQ(early.InverseDivisor(), late.InverseDivisor());
}

TEST(RoundTest, TellsTheBasesAndExamplesOfItsGradients) {
  Round round = NewRound(kAnyOrder);
  round.Add({.push = PushId{1}, .worker = WorkerId{4}, .base = Version{9}, .examples = 32});
  round.Add({.push = PushId{2}, .worker = WorkerId{4}, .base = Version{6}, .examples = 5});

  EXPECT_EQ(round.bases(), (std::vector<Version>{Version{9}, Version{6}}));
  EXPECT_EQ(round.examples(), 37u);
  EXPECT_EQ(round.contributions(), 2u);
}

struct Gradient {
  Round::Contribution contribution;
  double value = 0;
};

struct Folded {
  double sum = 0;
  std::vector<uint64_t> order;
};

// Carries out the folds, like a shell. Each must name a gradient that was added and not folded yet.
void Carry(const std::vector<Fold>& folds, const std::vector<Gradient>& gradients, Folded& folded) {
  for (const Fold& fold : folds) {
    ASSERT_EQ(fold.first, folded.order.empty());
    const uint64_t id = static_cast<uint64_t>(fold.push);
    ASSERT_EQ(std::count(folded.order.begin(), folded.order.end(), id), 0);
    const auto found = std::find_if(gradients.begin(), gradients.end(), [&](const Gradient& g) {
      return g.contribution.push == fold.push;
    });
    ASSERT_NE(found, gradients.end());
    const double term = static_cast<double>(fold.clip) * fold.weight * found->value;
    folded.sum = fold.first ? term : folded.sum + term;
    folded.order.push_back(id);
  }
}

double MeanOverExamples(const std::vector<Gradient>& gradients) {
  double sum = 0;
  double examples = 0;
  for (const Gradient& gradient : gradients) {
    sum += gradient.value * gradient.contribution.examples;
    examples += gradient.contribution.examples;
  }
  return sum / examples;
}

double MeanOfScaled(const std::vector<Gradient>& gradients) {
  double sum = 0;
  for (const Gradient& gradient : gradients)
    sum += gradient.value * gradient.contribution.scale * gradient.contribution.clip;
  return sum / static_cast<double>(gradients.size());
}

// Lets workers answer in the order `arrival`. Some of them excuse themselves, at random.
void PlaySynchronous(RandomStream& random, const std::vector<uint32_t>& arrival,
                     std::vector<Gradient>& gradients, Round& round, Folded& folded) {
  std::vector<uint32_t> awaited(arrival.size());
  std::iota(awaited.begin(), awaited.end(), 0);
  for (uint32_t worker : arrival) {
    std::erase(awaited, worker);
    const bool is_last = awaited.empty();
    if (random.Below(4) == 0 && !(is_last && gradients.empty())) {
      round.Excuse(WorkerId{worker});
    } else {
      gradients.push_back({From(worker, 1 + random.Below(64)), 1.0 + random.Unit()});
      round.Add(gradients.back().contribution);
    }
    ASSERT_NO_FATAL_FAILURE(Carry(round.TakeFolds(Workers(awaited), is_last), gradients, folded));
    for (uint64_t id : folded.order) {
      ASSERT_TRUE(is_last || id - 100 < awaited.front());
    }
    const auto due = std::count_if(gradients.begin(), gradients.end(), [&](const Gradient& g) {
      return is_last || Value(g.contribution.worker) < awaited.front();
    });
    ASSERT_EQ(folded.order.size(), static_cast<size_t>(due)) << "what can be folded is folded";
  }
}

TEST(RoundPropertyTest, SynchronousIsTheMeanOverAllExamplesInOrderOfWorkers) {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomStream random(seed, 4);
    std::vector<uint32_t> arrival(1 + random.Below(7));
    std::iota(arrival.begin(), arrival.end(), 0);
    for (size_t i = arrival.size(); i > 1; --i) {
      std::swap(arrival[i - 1], arrival[random.Below(static_cast<uint32_t>(i))]);
    }
    std::vector<Gradient> gradients;
    Round round = NewRound(kSynchronous);
    Folded folded;

    ASSERT_NO_FATAL_FAILURE(PlaySynchronous(random, arrival, gradients, round, folded));

    ASSERT_EQ(folded.order.size(), gradients.size());
    ASSERT_TRUE(std::is_sorted(folded.order.begin(), folded.order.end()));
    // Weights are floats, with one rounding each: the error is a few 2⁻²⁴ of the result.
    ASSERT_NEAR(folded.sum * round.InverseDivisor(), MeanOverExamples(gradients), 1e-6);
  }
}

TEST(RoundPropertyTest, OtherwiseIsTheMeanOfTheScaledInOrderOfCompletion) {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomStream random(seed, 5);
    Round round = NewRound(kAnyOrder);
    Folded folded;
    std::vector<Gradient> gradients;
    std::vector<uint64_t> completed;
    const uint64_t count = 1 + random.Below(6);
    for (uint64_t i = 0; i < count; ++i) {
      Round::Contribution contribution = From(random.Below(3), 1 + random.Below(32));
      contribution.push = PushId{1000 - i};  // The order depends neither on names nor on workers.
      contribution.scale = 1.0 / (1 + random.Below(5));
      contribution.clip = 1.0 / (1 + random.Below(3));
      gradients.push_back({contribution, 1.0 + random.Unit()});
      completed.push_back(1000 - i);
      round.Add(contribution);

      const bool closes = i + 1 == count;
      ASSERT_NO_FATAL_FAILURE(Carry(round.TakeFolds({}, closes), gradients, folded));
      ASSERT_EQ(folded.order, completed);
    }
    ASSERT_NEAR(folded.sum * round.InverseDivisor(), MeanOfScaled(gradients), 1e-6);
  }
}

}  // namespace

namespace {

using Kind = RoundWork::Kind;

bool AllHeard(WorkerId) { return true; }

RoundWork Compute(uint64_t batch) { return {.kind = Kind::kCompute, .batches = {batch}}; }

TEST(RoundWorkPlanTest, GivesTheMemberOfRankKTheKthBatchOfTheRound) {
  RoundWorkPlan plan(100);
  const std::vector<WorkerId> members = Workers({2, 5, 9});

  EXPECT_EQ(plan.For(WorkerId{9}, members), Compute(2));
  EXPECT_EQ(plan.For(WorkerId{2}, members), Compute(0));
  EXPECT_EQ(plan.For(WorkerId{5}, members), Compute(1));

  plan.NextRound(AllHeard);

  EXPECT_EQ(plan.For(WorkerId{2}, members), Compute(3));
  EXPECT_EQ(plan.For(WorkerId{9}, members), Compute(5));
}

TEST(RoundWorkPlanTest, AnswersTheSameTwice) {
  RoundWorkPlan plan(100);
  const std::vector<WorkerId> members = Workers({0, 1});

  EXPECT_EQ(plan.For(WorkerId{1}, members), Compute(1));
  EXPECT_EQ(plan.For(WorkerId{1}, members), Compute(1));
}

TEST(RoundWorkPlanTest, ExcusesWhoJoinsAfterTheMembersAreFixed) {
  RoundWorkPlan plan(100);
  EXPECT_EQ(plan.For(WorkerId{1}, Workers({1, 3})), Compute(0));

  EXPECT_EQ(plan.For(WorkerId{2}, Workers({1, 2, 3})).kind, Kind::kExcused);
  EXPECT_EQ(plan.For(WorkerId{3}, Workers({1, 2, 3})), Compute(1));

  plan.NextRound(AllHeard);

  EXPECT_EQ(plan.For(WorkerId{2}, Workers({1, 2, 3})), Compute(3));
}

TEST(RoundWorkPlanTest, KnowsWhatWasDoneInTheLastRound) {
  RoundWorkPlan plan(100);
  const std::vector<WorkerId> members = Workers({0, 1});
  plan.For(WorkerId{0}, members);
  EXPECT_EQ(plan.LastOf(WorkerId{1}), std::nullopt);

  plan.NextRound([](WorkerId worker) { return worker == WorkerId{1}; });

  EXPECT_EQ(plan.LastOf(WorkerId{1}), BatchRange{1});
  EXPECT_EQ(plan.LastOf(WorkerId{0}), std::nullopt);
}

TEST(RoundWorkPlanTest, ExcusesMembersWithoutWorkInTheLastRound) {
  RoundWorkPlan plan(5);
  const std::vector<WorkerId> members = Workers({0, 1, 2});
  EXPECT_EQ(plan.For(WorkerId{2}, members), Compute(2));
  plan.NextRound(AllHeard);

  EXPECT_FALSE(plan.finished());
  EXPECT_EQ(plan.For(WorkerId{0}, members), Compute(3));
  EXPECT_EQ(plan.For(WorkerId{1}, members), Compute(4));
  EXPECT_EQ(plan.For(WorkerId{2}, members).kind, Kind::kExcused);
}

TEST(RoundWorkPlanTest, IsFinishedOnceEveryBatchBelongsToAClosedRound) {
  RoundWorkPlan plan(4);
  const std::vector<WorkerId> members = Workers({0, 1});
  plan.For(WorkerId{0}, members);
  plan.NextRound(AllHeard);
  plan.For(WorkerId{0}, members);
  EXPECT_FALSE(plan.finished());

  plan.NextRound(AllHeard);

  EXPECT_TRUE(plan.finished());
  EXPECT_EQ(plan.For(WorkerId{0}, members).kind, Kind::kFinished);
  EXPECT_EQ(plan.For(WorkerId{1}, members).kind, Kind::kFinished);
}

TEST(RoundWorkPlanTest, NamesAgainWhatWasLateFirstToThoseWhoWereHeard) {
  RoundWorkPlan plan(100);
  const std::vector<WorkerId> members = Workers({0, 1, 2});
  plan.For(WorkerId{0}, members);

  plan.NextRound([](WorkerId worker) { return worker != WorkerId{0}; });

  EXPECT_EQ(plan.batches_done(), 2u);
  EXPECT_EQ(plan.For(WorkerId{1}, members), Compute(0));
  EXPECT_EQ(plan.For(WorkerId{2}, members), Compute(3));
  EXPECT_EQ(plan.For(WorkerId{0}, members), Compute(4));
}

TEST(RoundWorkPlanTest, IsNotFinishedWhileABatchIsToBeNamedAgain) {
  RoundWorkPlan plan(2);
  plan.For(WorkerId{0}, Workers({0, 1}));
  plan.NextRound([](WorkerId worker) { return worker == WorkerId{0}; });
  EXPECT_FALSE(plan.finished());

  EXPECT_EQ(plan.For(WorkerId{0}, Workers({0})), Compute(1));
  plan.NextRound(AllHeard);

  EXPECT_TRUE(plan.finished());
  EXPECT_EQ(plan.batches_done(), 2u);
}

// Whatever the members do, each mini-batch is done in one round, by one member. If no member is
// late, mini-batches are done in order.
TEST(RoundWorkPlanPropertyTest, HasEveryBatchDoneExactlyOnce) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomStream random(seed, 3);
    const uint64_t total = 1 + random.Below(60);
    const bool some_are_late = random.Below(2) == 0;
    RoundWorkPlan plan(total);
    std::vector<uint64_t> done;

    while (!plan.finished()) {
      std::vector<WorkerId> members;
      for (uint32_t id = 0; id < 8; ++id) {
        if (random.Below(2) == 0) members.push_back(WorkerId{id});
      }
      if (members.empty()) members.push_back(WorkerId{3});
      std::set<WorkerId> late;
      std::vector<uint64_t> named;
      for (const WorkerId worker : members) {
        if (some_are_late && random.Below(3) == 0) late.insert(worker);
        const RoundWork work = plan.For(worker, members);
        if (work.kind != Kind::kCompute) continue;
        named.push_back(work.batches.first);
        if (!late.contains(worker)) done.push_back(work.batches.first);
      }
      ASSERT_FALSE(named.empty());
      plan.NextRound([&late](WorkerId worker) { return !late.contains(worker); });
      ASSERT_EQ(plan.batches_done(), done.size());
    }
    if (some_are_late) std::ranges::sort(done);
    ASSERT_EQ(done.size(), total);
    for (uint64_t batch = 0; batch < total; ++batch) ASSERT_EQ(done[batch], batch);
  }
}

TEST(RoundWorkPlanTest, ClosedWithinARoundItEndsWithThatRound) {
  RoundWorkPlan plan(100);
  const std::vector<WorkerId> members = Workers({0, 1, 2});
  plan.NextRound(AllHeard);
  ASSERT_EQ(plan.For(WorkerId{0}, members), Compute(0));

  plan.Close();

  EXPECT_FALSE(plan.finished());
  EXPECT_EQ(plan.For(WorkerId{2}, members), Compute(2));
  plan.NextRound(AllHeard);
  EXPECT_TRUE(plan.finished());
  EXPECT_EQ(plan.For(WorkerId{0}, members).kind, Kind::kFinished);
}

TEST(RoundWorkPlanTest, ClosedBetweenRoundsItIsFinished) {
  RoundWorkPlan plan(100);
  ASSERT_EQ(plan.For(WorkerId{0}, Workers({0})), Compute(0));
  plan.NextRound(AllHeard);

  plan.Close();

  EXPECT_TRUE(plan.finished());
}

TEST(RoundWorkPlanTest, ClosingDoesNotLengthenTheLastRound) {
  RoundWorkPlan plan(2);
  const std::vector<WorkerId> members = Workers({0, 1, 2});
  ASSERT_EQ(plan.For(WorkerId{2}, members).kind, Kind::kExcused);

  plan.Close();

  EXPECT_EQ(plan.For(WorkerId{2}, members).kind, Kind::kExcused);
  EXPECT_EQ(plan.For(WorkerId{1}, members), Compute(1));
}

TEST(RoundWorkPlanTest, NamesEachMemberTheBatchesOfOnePush) {
  RoundWorkPlan plan(10, 4);
  const std::vector<WorkerId> members = Workers({1, 3});
  EXPECT_EQ(plan.For(WorkerId{1}, members).batches, (BatchRange{0, 4}));
  EXPECT_EQ(plan.For(WorkerId{3}, members).batches, (BatchRange{4, 4}));

  plan.NextRound([](WorkerId worker) { return worker == WorkerId{3}; });

  EXPECT_EQ(plan.batches_done(), 4u);
  EXPECT_EQ(plan.For(WorkerId{3}, members).batches, (BatchRange{0, 4})) << "named again";
  EXPECT_EQ(plan.For(WorkerId{1}, members).batches, (BatchRange{8, 2})) << "all that is left";
  plan.NextRound(AllHeard);
  EXPECT_EQ(plan.batches_done(), 10u);
  EXPECT_TRUE(plan.finished());
}

}  // namespace

}  // namespace slipstream
