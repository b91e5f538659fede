#include "server/core/coordinator/evaluations.h"

#include <gtest/gtest.h>

#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/core/coordinator/coordinator.h"
#include "tests/server/core/coordinator/coordinator_fixture.h"

// Tests of the choice of the worker that measures the weights, of what happens when none does, and
// of the members that a run waits for before it fails.

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
        Evaluation{.test_accuracy = kNan}, Evaluation{.seconds = -1}, Evaluation{.seconds = kNan},
        Evaluation{.epochs_measured = -1}, Evaluation{.epochs_measured = kNan}}) {
    EXPECT_FALSE(evaluations.Report(kAda, 1, impossible, "").ok());
  }
  EXPECT_TRUE(evaluations.results().empty());
  EXPECT_TRUE(evaluations.Report(kAda, 1, {.test_accuracy = 1.0, .test_loss = kNan}, "").ok())
      << "training may diverge";
  EXPECT_TRUE(evaluations.Report(kAda, 1, {.test_loss = -1}, "").ok())
      << "a program's own loss may be a negative one";
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

namespace {

TEST_F(CoordinatorTest, TheFinalEvaluationIsOrderedAgainIfItsWorkerDies) {
  RunSpec spec = Spec();
  spec.evaluation.every_epochs = 0;
  Train(spec);
  WorkAllAs(ada_);
  drained_ = true;
  Sync();
  ASSERT_TRUE(coordinator().EvaluationFor(ada_.worker).has_value());

  Pass(absl::Seconds(6), {bob_});

  ASSERT_TRUE(coordinator().EvaluationFor(bob_.worker).has_value());
  EXPECT_TRUE(coordinator().EvaluationFor(bob_.worker)->is_final);

  // No worker is left. One that comes back may still measure the weights.
  ASSERT_TRUE(coordinator().OnLeave(bob_, "", now_).ok());
  EXPECT_EQ(coordinator().phase(), Phase::kEvaluating);
  const auto back = coordinator().OnRegister({.worker = WorkerId{1}}, now_);
  ASSERT_TRUE(back.ok());
  EXPECT_TRUE(coordinator().EvaluationFor(WorkerId{1}).has_value());
  Pass(absl::Seconds(130), {});
  EXPECT_EQ(coordinator().phase(), Phase::kFailed);
}

TEST_F(CoordinatorTest, AnEvaluatorThatGetsOnHasAllTheTimeItNeeds) {
  Evaluate();
  const uint64_t order = coordinator().EvaluationFor(ada_.worker)->number;
  coordinator().OnMeasured(ada_, order - 1, 1'000'000, now_);  // An order that is over.
  for (uint64_t measured = 1; measured <= 5; ++measured) {
    ASSERT_NO_FATAL_FAILURE(Pass(absl::Seconds(50), {ada_, bob_}));
    coordinator().OnMeasured(ada_, order, 100 * measured, now_);
    coordinator().OnMeasured(bob_, order, 1'000'000, now_);  // Bob has no order.
  }
  ASSERT_TRUE(coordinator().EvaluationFor(ada_.worker).has_value()) << "after 250 s, not 60";

  // Ada keeps reporting, but makes no progress.
  for (int times = 0; times < 2; ++times) {
    ASSERT_NO_FATAL_FAILURE(Pass(absl::Seconds(50), {ada_, bob_}));
    coordinator().OnMeasured(ada_, order, 500, now_);
  }
  EXPECT_FALSE(coordinator().EvaluationFor(ada_.worker).has_value());
  EXPECT_TRUE(coordinator().EvaluationFor(bob_.worker).has_value());
}

TEST_F(CoordinatorTest, AnEvaluationGivenToAnotherWorkerNamesTheEpochsCompleteByThen) {
  RunSpec spec = Spec(ConsistencySpec::Policy::kHardsync);
  spec.training.epochs = 10;
  Train(spec);
  batches_ = 4;
  Sync();
  ASSERT_EQ(coordinator().EvaluationFor(ada_.worker)->epoch, 1u);
  batches_ = 12;
  Sync();

  ASSERT_TRUE(coordinator().OnLeave(ada_, "", now_).ok());

  ASSERT_TRUE(coordinator().EvaluationFor(bob_.worker).has_value());
  EXPECT_EQ(coordinator().EvaluationFor(bob_.worker)->epoch, 3u);
}

TEST_F(CoordinatorTest, SaysThatAnEvaluationWasSkippedAndWhy) {
  RunSpec spec = Spec(ConsistencySpec::Policy::kHardsync);
  spec.training.epochs = 10;
  Train(spec);
  for (uint64_t epoch = 1; epoch <= 3; ++epoch) {
    batches_ = 4 * epoch;
    Sync();
  }

  EXPECT_EQ(CountNotes("evaluation skipped epoch=2 reason=\"the one of epoch 1 still runs\""), 1);
}

TEST_F(CoordinatorTest, FailsWhenTheFinalWeightsGiveALossThatIsNotFinite) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const std::pair<double, std::string> cases[] = {
      {kNan, "nan"}, {-kNan, "nan"}, {std::numeric_limits<double>::infinity(), "inf"}};
  for (const auto& [loss, text] : cases) {
    initialized_ = drained_ = false;
    Evaluate();

    ASSERT_TRUE(coordinator().OnReport(ada_, 1, {.test_loss = loss}, kHash, now_).ok());

    EXPECT_EQ(coordinator().phase(), Phase::kFailed);
    EXPECT_EQ(coordinator().failure(), "training diverged: the final weights give loss " + text);
  }
}

TEST_F(CoordinatorTest, AWorkerThatLivesButDoesNotMeasureIsFollowedByTheNextUntilNoneIsLeft) {
  Evaluate();

  Pass(absl::Seconds(60), {ada_, bob_});
  EXPECT_TRUE(coordinator().EvaluationFor(ada_.worker).has_value());
  Pass(absl::Seconds(1), {ada_, bob_});

  EXPECT_FALSE(coordinator().EvaluationFor(ada_.worker).has_value());
  ASSERT_TRUE(coordinator().EvaluationFor(bob_.worker).has_value());
  EXPECT_TRUE(coordinator().EvaluationFor(bob_.worker)->is_final);
  Pass(absl::Seconds(60), {ada_, bob_});
  EXPECT_EQ(coordinator().phase(), Phase::kEvaluating);
  Pass(absl::Seconds(1), {ada_, bob_});
  EXPECT_EQ(coordinator().failure(),
            "no worker measured the final weights within 1m00s, though 2 live");
}

TEST_F(CoordinatorTest, AnEvaluationOrderedWhileTrainingDoesNotHoldUpTheFinalOneForEver) {
  Train(Spec());
  WorkAllAs(ada_);
  Pass(absl::Seconds(100), {ada_, bob_});
  drained_ = true;
  Sync();
  ASSERT_EQ(coordinator().phase(), Phase::kEvaluating);
  ASSERT_FALSE(coordinator().EvaluationFor(ada_.worker)->is_final);

  Pass(absl::Seconds(60), {ada_, bob_});
  EXPECT_TRUE(coordinator().EvaluationFor(ada_.worker).has_value());
  Pass(absl::Seconds(1), {ada_, bob_});

  ASSERT_TRUE(coordinator().EvaluationFor(bob_.worker).has_value());
  EXPECT_TRUE(coordinator().EvaluationFor(bob_.worker)->is_final);
}

}  // namespace

namespace {

TEST_F(CoordinatorTest, NamesTheServersThatHaveNotComeAndWhenTheRunFails) {
  Use(Spec());
  SyncOne(0);
  now_ += absl::Seconds(8);
  SyncOne(0);

  const auto missing = coordinator().Missing(now_);

  ASSERT_TRUE(missing.has_value());
  EXPECT_EQ(missing->shards, std::vector<ShardId>{ShardId{1}});
  EXPECT_EQ(missing->fails_in, absl::Seconds(52));
  SyncOne(1);
  EXPECT_TRUE(coordinator().Missing(now_)->shards.empty());
}

TEST_F(CoordinatorTest, NamesTheWorkersThatHaveNotCome) {
  Use(Spec());
  Sync();
  Join();

  const auto missing = coordinator().Missing(now_);

  ASSERT_TRUE(missing.has_value());
  EXPECT_EQ(missing->workers, std::vector<WorkerId>{WorkerId{1}});
  EXPECT_EQ(missing->fails_in, absl::Seconds(60));
}

TEST_F(CoordinatorTest, MissesNobodyWhileTrainingGoesOn) {
  Train(Spec());

  EXPECT_FALSE(coordinator().Missing(now_).has_value());
  EXPECT_FALSE(coordinator().Missing(now_ + MissingMembers::kServerSilenceMax).has_value());
}

TEST_F(CoordinatorTest, MissesAServerThatHasFallenSilent) {
  Train(Spec());
  now_ += absl::Seconds(10);
  SyncOne(0);

  const auto missing = coordinator().Missing(now_);

  ASSERT_TRUE(missing.has_value());
  EXPECT_EQ(missing->shards, std::vector<ShardId>{ShardId{1}});
  EXPECT_EQ(missing->fails_in, absl::Seconds(50));
}

TEST_F(CoordinatorTest, MissesAnyWorkerWhenAllAreGone) {
  Train(Spec());
  ASSERT_TRUE(coordinator().OnLeave(ada_, "no memory", now_).ok());
  ASSERT_TRUE(coordinator().OnLeave(bob_, "no memory", now_).ok());
  now_ += absl::Seconds(2);
  Sync();

  const auto missing = coordinator().Missing(now_);

  ASSERT_TRUE(missing.has_value());
  EXPECT_TRUE(missing->shards.empty() && missing->workers.empty());
  EXPECT_EQ(missing->fails_in, absl::Seconds(58));
}

}  // namespace

}  // namespace slipstream
