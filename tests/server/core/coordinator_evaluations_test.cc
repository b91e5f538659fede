#include "server/core/coordinator_evaluations.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

namespace slipstream {
namespace {

constexpr WorkerId kAda{0};
constexpr WorkerId kBob{1};

const std::string kHash(64, 'a');

TEST(EvaluationsTest, FallDueAfterEveryFewEpochsButNotTheLast) {
  Evaluations evaluations(2, 0, 4);

  evaluations.OnEpochs(1);
  EXPECT_FALSE(evaluations.due());
  evaluations.OnEpochs(2);
  EXPECT_TRUE(evaluations.Assign(kAda));
  EXPECT_EQ(evaluations.open()->epoch, 2u);
  ASSERT_TRUE(evaluations.Report(kAda, 1, {}, "").ok());
  evaluations.OnEpochs(4);
  EXPECT_FALSE(evaluations.due());
}

TEST(EvaluationsTest, NoneButTheFinalOneIfEveryIsZero) {
  Evaluations evaluations(0, 0, 4);

  evaluations.OnEpochs(3);
  EXPECT_FALSE(evaluations.due());
  evaluations.OnLastUpdate(4);
  EXPECT_TRUE(evaluations.due());
}

TEST(EvaluationsTest, SkipToTheNewestEpochWhileOneRuns) {
  Evaluations evaluations(1, 0, 10);
  evaluations.OnEpochs(1);
  ASSERT_TRUE(evaluations.Assign(kAda));
  evaluations.OnEpochs(2);
  evaluations.OnEpochs(3);

  EXPECT_FALSE(evaluations.Assign(kBob));
  ASSERT_TRUE(evaluations.Report(kAda, 1, {}, "").ok());

  ASSERT_TRUE(evaluations.Assign(kBob));
  EXPECT_EQ(evaluations.open()->epoch, 3u);
}

TEST(EvaluationsTest, AnOrderOfADeadWorkerIsGivenToAnother) {
  Evaluations evaluations(1, 0, 1);
  evaluations.OnLastUpdate(1);
  ASSERT_TRUE(evaluations.Assign(kAda));

  evaluations.Forget(kAda);
  ASSERT_TRUE(evaluations.Assign(kBob));

  EXPECT_TRUE(evaluations.open()->is_final);
  EXPECT_EQ(evaluations.open()->number, 2u);
  EXPECT_FALSE(evaluations.Report(kAda, 1, {}, kHash).ok());
  EXPECT_TRUE(evaluations.Report(kBob, 2, {}, kHash).ok());
  EXPECT_TRUE(evaluations.final_done());
  EXPECT_EQ(evaluations.weights_sha256(), kHash);
}

TEST(EvaluationsTest, NumbersGoOnWhereTheOldestResultsAreDropped) {
  const auto count = static_cast<uint32_t>(Evaluations::kResultsMax) + 2;
  Evaluations evaluations(1, 0, count + 1);
  for (uint32_t epoch = 1; epoch <= count; ++epoch) {
    evaluations.OnEpochs(epoch);
    ASSERT_TRUE(evaluations.Assign(kAda));
    ASSERT_TRUE(evaluations.Report(kAda, epoch, {}, "").ok());
  }

  EXPECT_EQ(evaluations.results().size(), Evaluations::kResultsMax);
  EXPECT_EQ(evaluations.results().front().number, 3u);
  EXPECT_EQ(evaluations.results().back().number, count);
}

TEST(EvaluationsTest, AnOrderGivenAgainIsLabelledWithTheEpochsCompleteByThen) {
  Evaluations evaluations(2, 0, 10);
  evaluations.OnEpochs(2);
  ASSERT_TRUE(evaluations.Assign(kAda));
  evaluations.OnEpochs(3);

  evaluations.Forget(kAda);
  ASSERT_TRUE(evaluations.Assign(kBob));

  EXPECT_EQ(evaluations.open()->epoch, 3u);
  ASSERT_TRUE(evaluations.Report(kBob, 2, {}, "").ok());
  EXPECT_EQ(evaluations.results().back().epoch, 3u);
}

TEST(EvaluationsTest, NameTheEpochsThatAreNotMeasuredWhileOneRuns) {
  Evaluations evaluations(2, 0, 20);
  EXPECT_TRUE(evaluations.OnEpochs(2).empty());
  ASSERT_TRUE(evaluations.Assign(kAda));

  EXPECT_TRUE(evaluations.OnEpochs(4).empty()) << "it may still be made";
  EXPECT_TRUE(evaluations.OnEpochs(5).empty());
  EXPECT_EQ(evaluations.OnEpochs(11), (std::vector<uint32_t>{4, 6, 8}));
  EXPECT_EQ(evaluations.OnLastUpdate(20), 10u);
}

TEST(EvaluationsTest, AHolderThatDoesNotReportIsGivenUpUntilItIsForgotten) {
  Evaluations evaluations(1, 0, 1);
  evaluations.OnLastUpdate(1);
  ASSERT_TRUE(evaluations.Assign(kAda));

  evaluations.GiveUpHolder();

  EXPECT_TRUE(evaluations.due());
  EXPECT_TRUE(evaluations.IsGivenUp(kAda));
  EXPECT_FALSE(evaluations.Report(kAda, 1, {}, kHash).ok());
  evaluations.Forget(kAda);
  EXPECT_FALSE(evaluations.IsGivenUp(kAda));
}

TEST(EvaluationsTest, TheFinalOneWaitsForOneThatRuns) {
  Evaluations evaluations(1, 0, 3);
  evaluations.OnEpochs(2);
  ASSERT_TRUE(evaluations.Assign(kAda));

  evaluations.OnLastUpdate(3);
  EXPECT_FALSE(evaluations.Assign(kBob));
  ASSERT_TRUE(evaluations.Report(kAda, 1, {}, "").ok());

  ASSERT_TRUE(evaluations.Assign(kBob));
  EXPECT_TRUE(evaluations.open()->is_final);
  EXPECT_EQ(evaluations.open()->epoch, 3u);
}

TEST(EvaluationsTest, RepeatedReportsHaveNoEffectAndForeignOnesAreRefused) {
  Evaluations evaluations(1, 0, 3);
  evaluations.OnEpochs(1);
  ASSERT_TRUE(evaluations.Assign(kAda));

  EXPECT_FALSE(evaluations.Report(kBob, 1, {}, "").ok());
  EXPECT_FALSE(evaluations.Report(kAda, 2, {}, "").ok());
  EXPECT_TRUE(evaluations.Report(kAda, 1, {}, "").ok());
  EXPECT_TRUE(evaluations.Report(kAda, 1, {}, "").ok());

  EXPECT_EQ(evaluations.results().size(), 1u);
}

TEST(EvaluationsTest, WhatNoMeasurementComesToIsRefused) {
  Evaluations evaluations(1, 0, 3);
  evaluations.OnEpochs(1);
  ASSERT_TRUE(evaluations.Assign(kAda));
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

  for (const Evaluation& impossible :
       {Evaluation{.test_accuracy = 2.0}, Evaluation{.test_accuracy = -0.1},
        Evaluation{.test_accuracy = kNan}, Evaluation{.test_loss = -1}, Evaluation{.seconds = -1},
        Evaluation{.seconds = kNan}, Evaluation{.epochs_measured = -1},
        Evaluation{.epochs_measured = kNan}}) {
    EXPECT_FALSE(evaluations.Report(kAda, 1, impossible, "").ok());
  }
  EXPECT_TRUE(evaluations.results().empty());
  EXPECT_TRUE(evaluations.Report(kAda, 1, {.test_accuracy = 1.0, .test_loss = kNan}, "").ok())
      << "training may diverge";
}

TEST(EvaluationsTest, SavesFallDueAfterEpochsOfTheirOwn) {
  Evaluations evaluations(2, 3, 10);

  evaluations.OnEpochs(2);
  ASSERT_TRUE(evaluations.Assign(kAda));
  EXPECT_FALSE(evaluations.open()->saves);
  ASSERT_TRUE(evaluations.Report(kAda, 1, {}, "").ok());
  evaluations.OnEpochs(3);
  ASSERT_TRUE(evaluations.Assign(kAda));

  EXPECT_TRUE(evaluations.open()->saves);
  EXPECT_EQ(evaluations.open()->epoch, 3u);
}

TEST(EvaluationsTest, SavesNeedNoOtherMeasurements) {
  Evaluations evaluations(0, 2, 4);

  evaluations.OnEpochs(1);
  EXPECT_FALSE(evaluations.due());
  evaluations.OnEpochs(2);
  ASSERT_TRUE(evaluations.Assign(kAda));

  EXPECT_TRUE(evaluations.open()->saves);
}

TEST(EvaluationsTest, ASaveThatHasToWaitIsMadeWithTheNextOrder) {
  Evaluations evaluations(1, 2, 10);
  evaluations.OnEpochs(1);
  ASSERT_TRUE(evaluations.Assign(kAda));
  evaluations.OnEpochs(2);

  EXPECT_EQ(evaluations.OnEpochs(3), (std::vector<uint32_t>{2}));
  ASSERT_TRUE(evaluations.Report(kAda, 1, {}, "").ok());
  ASSERT_TRUE(evaluations.Assign(kAda));

  EXPECT_TRUE(evaluations.open()->saves);
  EXPECT_EQ(evaluations.open()->epoch, 3u);
}

TEST(EvaluationsTest, ASaveThatADeadWorkerOwesIsMadeByAnother) {
  Evaluations evaluations(0, 1, 10);
  evaluations.OnEpochs(1);
  ASSERT_TRUE(evaluations.Assign(kAda));

  evaluations.Forget(kAda);
  ASSERT_TRUE(evaluations.Assign(kBob));

  EXPECT_TRUE(evaluations.open()->saves);
}

TEST(EvaluationsTest, TheFinalWeightsAreSavedWhateverWasDue) {
  Evaluations evaluations(0, 0, 4);

  evaluations.OnLastUpdate(4);
  ASSERT_TRUE(evaluations.Assign(kAda));

  EXPECT_TRUE(evaluations.open()->saves);
}

TEST(EvaluationsTest, EndlessTextAboutASavedModelIsRefused) {
  Evaluations evaluations(1, 0, 3);
  evaluations.OnEpochs(1);
  ASSERT_TRUE(evaluations.Assign(kAda));
  const Evaluation result = {.model_failure = std::string(Evaluations::kTextBytesMax + 1, 'x')};

  EXPECT_FALSE(evaluations.Report(kAda, 1, result, "").ok());
}

TEST(EvaluationsTest, TheFinalResultNeedsTheHashOfTheWeights) {
  Evaluations evaluations(1, 0, 1);
  evaluations.OnLastUpdate(1);
  ASSERT_TRUE(evaluations.Assign(kAda));

  EXPECT_FALSE(evaluations.Report(kAda, 1, {}, "").ok());
  EXPECT_FALSE(evaluations.Report(kAda, 1, {}, std::string(64, 'Z')).ok());
  EXPECT_TRUE(evaluations.Report(kAda, 1, {}, kHash).ok());
}

}  // namespace
}  // namespace slipstream
