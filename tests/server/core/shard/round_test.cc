#include "server/core/shard/round.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "common/base/philox.h"
#include "tests/support/specs.h"

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
  EXPECT_EQ(Text(round.TakeFolds(WorkerId{0}, kStaysOpen)), "");
  round.Add(From(0));
  EXPECT_EQ(Text(round.TakeFolds(WorkerId{1}, kStaysOpen)), "=0");
  round.Add(From(1));
  EXPECT_EQ(Text(round.TakeFolds(WorkerId{3}, kStaysOpen)), "+1+2");
  round.Add(From(3));
  EXPECT_EQ(Text(round.TakeFolds({}, kCloses)), "+3");

  EXPECT_DOUBLE_EQ(round.InverseDivisor(), 0.25);
}

TEST(RoundTest, AnExcuseLetsLaterWorkersBeFolded) {
  Round round = NewRound(kSynchronous);
  round.Add(From(1));
  EXPECT_EQ(Text(round.TakeFolds(WorkerId{0}, kStaysOpen)), "");

  round.Excuse(WorkerId{0});

  EXPECT_TRUE(round.HasHeardFrom(WorkerId{0}));
  EXPECT_TRUE(round.HasHeardFrom(WorkerId{1}));
  EXPECT_FALSE(round.HasHeardFrom(WorkerId{2}));
  EXPECT_EQ(round.excused(), 1u);
  EXPECT_EQ(round.contributions(), 1u);
  EXPECT_EQ(Text(round.TakeFolds(WorkerId{2}, kStaysOpen)), "=1");
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

TEST(RoundTest, OnlyTensorsForWhichNobodyHasAGradientAreAbsent) {
  Round round = NewRound(kAnyOrder);
  Round::Contribution first = From(0), second = From(1), third = From(2);
  for (const size_t tensor : {1, 3, 17}) first.absent.Add(tensor);
  for (const size_t tensor : {3, 4, 17}) second.absent.Add(tensor);
  third.absent.Add(3);
  const auto absent = [&round] {
    std::vector<size_t> tensors;
    for (size_t tensor = 0; tensor < 200; ++tensor) {
      if (round.absent().Has(tensor)) tensors.push_back(tensor);
    }
    return tensors;
  };

  round.Add(first);
  EXPECT_EQ(absent(), (std::vector<size_t>{1, 3, 17}));
  round.Add(second);
  EXPECT_EQ(absent(), (std::vector<size_t>{3, 17}));
  round.Add(third);
  EXPECT_EQ(absent(), (std::vector<size_t>{3}));
  round.Add(From(3));
  EXPECT_TRUE(round.absent().empty());
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
  const std::vector<Fold> folded_at_once = early.TakeFolds(WorkerId{1}, kStaysOpen);
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
    const auto first = is_last ? std::nullopt : std::optional(WorkerId{awaited.front()});
    ASSERT_NO_FATAL_FAILURE(Carry(round.TakeFolds(first, is_last), gradients, folded));
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
}  // namespace slipstream
