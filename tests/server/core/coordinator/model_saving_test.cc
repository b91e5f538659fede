#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "server/core/coordinator/coordinator.h"
#include "server/core/coordinator/evaluations.h"
#include "tests/server/core/coordinator/coordinator_fixture.h"

// Tests of which worker saves the trained weights, and of what happens if none can.

namespace slipstream {
namespace {

constexpr WorkerId kAda{0};
constexpr WorkerId kBob{1};

/// A case: what a worker told of its directory, whether it left, and what the last report says.
struct EndCase {
  std::optional<Saving> saving;
  bool leaves;
  Evaluation result;
  std::string why;
};

TEST(EvaluationsTest, AreMadeByAWorkerThatCanSaveIfTheWeightsAreToBeSaved) {
  const WorkerId cat{2};
  Evaluations evaluations(1, 2, 10);
  evaluations.OnSaving(kAda, {Saving::State::kNotAsked, ""});
  evaluations.OnSaving(kBob, {Saving::State::kCannot, "full"});

  evaluations.OnEpochs(1);
  EXPECT_EQ(evaluations.Choose({kAda, kBob, cat}), kAda) << "nothing is saved";
  evaluations.OnEpochs(2);
  EXPECT_EQ(evaluations.Choose({kAda, kBob}), kBob) << "there may be room again";
  EXPECT_EQ(evaluations.Choose({kAda, kBob, cat}), cat) << "it has not told";
  evaluations.OnSaving(kBob, {Saving::State::kCan, ""});
  EXPECT_EQ(evaluations.Choose({kAda, kBob, cat}), kBob);
  evaluations.Forget(kBob);
  EXPECT_EQ(evaluations.Choose({kAda}), kAda);
  EXPECT_EQ(evaluations.Choose({}), std::nullopt);
}

TEST(EvaluationsTest, OfFinalWeightsThatCouldNotBeSavedAreMadeAgainByAWorkerThatCan) {
  Evaluations evaluations(0, 0, 1);
  evaluations.OnSaving(kAda, {Saving::State::kCan, ""});
  evaluations.OnSaving(kBob, {Saving::State::kCan, ""});
  evaluations.OnLastUpdate(1);
  ASSERT_TRUE(evaluations.Assign(*evaluations.Choose({kAda, kBob})));
  const Evaluation failed = {.model_failure = "full"};

  ASSERT_TRUE(evaluations.Report(kAda, 1, failed, kHash, {kAda, kBob}).ok());
  EXPECT_FALSE(evaluations.final_done());
  EXPECT_TRUE(evaluations.Report(kAda, 1, failed, kHash, {kAda, kBob}).ok()) << "repeated";
  EXPECT_EQ(evaluations.Choose({kAda, kBob}), kBob);
  ASSERT_TRUE(evaluations.Assign(kBob));
  ASSERT_TRUE(
      evaluations.Report(kBob, 2, {.model_file = "/m.safetensors"}, kHash, {kAda, kBob}).ok());

  EXPECT_TRUE(evaluations.final_done());
  EXPECT_EQ(evaluations.results().size(), 1u);
  EXPECT_EQ(evaluations.WhyNotSaved(), "");
}

TEST(EvaluationsTest, OfFinalWeightsAreNotMadeAgainForAWorkerThatWasGivenUp) {
  Evaluations evaluations(0, 0, 1);
  evaluations.OnSaving(kAda, {Saving::State::kCan, ""});
  evaluations.OnSaving(kBob, {Saving::State::kCan, ""});
  evaluations.OnLastUpdate(1);
  ASSERT_TRUE(evaluations.Assign(kBob));
  evaluations.GiveUpHolder();
  ASSERT_TRUE(evaluations.Assign(*evaluations.Choose({kAda, kBob})));

  ASSERT_TRUE(evaluations.Report(kAda, 2, {.model_failure = "full"}, kHash, {kAda, kBob}).ok());

  EXPECT_TRUE(evaluations.final_done());
  EXPECT_EQ(evaluations.WhyNotSaved(), "full");
}

TEST(EvaluationsTest, TellWhyTheFinalWeightsWereNotSavedIfAWorkerWasToldWhere) {
  using State = Saving::State;
  const EndCase cases[] = {
      {std::nullopt, false, {}, ""},
      {Saving{State::kNotAsked, ""}, false, {}, ""},
      {Saving{State::kCan, ""}, false, {.model_file = "/m"}, ""},
      {Saving{State::kCan, ""}, false, {.model_failure = "full"}, "full"},
      {std::nullopt, false, {.model_failure = "full"}, "full"},
      {Saving{State::kCan, ""},
       true,
       {},
       "the workers that were told where to save them have left"},
  };
  for (const EndCase& each : cases) {
    Evaluations evaluations(0, 0, 1);
    if (each.saving.has_value()) evaluations.OnSaving(kAda, *each.saving);
    if (each.leaves) evaluations.Forget(kAda);
    evaluations.OnLastUpdate(1);
    ASSERT_TRUE(evaluations.Assign(kBob));
    ASSERT_TRUE(evaluations.Report(kBob, 1, each.result, kHash, {kBob}).ok());
    EXPECT_EQ(evaluations.WhyNotSaved(), each.why);
  }
}

TEST_F(CoordinatorTest, FailsInItsFirstEpochIfNoWorkerCanSaveThoughOneWasToldWhere) {
  Train(Spec());
  ASSERT_TRUE(coordinator().OnSaving(ada_, {Saving::State::kCannot, "/x: full"}, now_).ok());
  EXPECT_EQ(coordinator().phase(), Phase::kTraining) << "the other has not told";
  EXPECT_EQ(CountNotes("a worker cannot save weights worker=0 reason=\"/x: full\""), 1);

  ASSERT_TRUE(coordinator().OnSaving(bob_, {Saving::State::kNotAsked, ""}, now_).ok());

  EXPECT_EQ(coordinator().phase(), Phase::kFailed);
  EXPECT_EQ(coordinator().failure(), "no worker can save the trained weights: worker 0: /x: full");
}

TEST_F(CoordinatorTest, AWorkerThatComesLateDoesNotEndTheRunBecauseItCannotSave) {
  Train(Spec());
  ASSERT_TRUE(coordinator().OnSaving(ada_, {Saving::State::kCan, ""}, now_).ok());
  ASSERT_TRUE(coordinator().OnSaving(bob_, {Saving::State::kNotAsked, ""}, now_).ok());
  ASSERT_TRUE(coordinator().OnLeave(ada_, "", now_).ok());
  const Identity late = Join();

  ASSERT_TRUE(coordinator().OnSaving(late, {Saving::State::kCannot, "full"}, now_).ok());

  EXPECT_EQ(coordinator().phase(), Phase::kTraining);
}

TEST_F(CoordinatorTest, GoesOnWithoutAWorkerThatCanSaveOnceItHasDoneWork) {
  RunSpec spec = Spec(ConsistencySpec::Policy::kHardsync);
  spec.training.epochs = 10;
  Train(spec);
  batches_ = 4;
  Sync();

  for (const Identity& worker : {ada_, bob_}) {
    ASSERT_TRUE(coordinator().OnSaving(worker, {Saving::State::kCannot, "full"}, now_).ok());
  }

  EXPECT_EQ(coordinator().phase(), Phase::kTraining);
}

}  // namespace
}  // namespace slipstream
