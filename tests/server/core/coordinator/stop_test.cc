#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <string>

#include "server/core/coordinator/stop_conditions.h"
#include "tests/server/core/coordinator/coordinator_fixture.h"

// Tests of the conditions that end a run before its epochs are over, and of what the coordinator
// does then.

namespace slipstream {
namespace {

using testing::HasSubstr;
using Policy = ConsistencySpec::Policy;

class CoordinatorStopTest : public CoordinatorTest {
 protected:
  /// Ada reports this accuracy for the evaluation that was ordered.
  void Measure(double accuracy) {
    const auto order = coordinator().EvaluationFor(ada_.worker);
    ASSERT_TRUE(order.has_value());
    Evaluation result;
    result.test_accuracy = accuracy;
    ASSERT_TRUE(coordinator()
                    .OnReport(ada_, order->number, result, order->is_final ? kHash : "", now_)
                    .ok());
  }

  /// Reports that the shards are drained, and measures the final weights.
  void Finish() {
    drained_ = true;
    Sync();
    ASSERT_EQ(coordinator().phase(), Phase::kEvaluating);
    while (coordinator().phase() == Phase::kEvaluating) ASSERT_NO_FATAL_FAILURE(Measure(0.5));
    EXPECT_EQ(coordinator().phase(), Phase::kFinished);
  }

  absl::Status Report(const Identity& worker, uint64_t unit, uint64_t done) {
    const UnitReport progress{unit, done};
    return coordinator().OnHeartbeat(worker, {&progress, 1}, now_);
  }
};

TEST_F(CoordinatorStopTest, ARunOfEpochsSaysSo) {
  Train(Spec());
  EXPECT_FALSE(coordinator().end_reason().has_value());

  WorkAllAs(ada_);
  Finish();

  EXPECT_EQ(coordinator().end_reason(), EndReason::kEpochs);
}

TEST_F(CoordinatorStopTest, ExactlySoManyStepsAreHandedOut) {
  for (uint64_t steps = 1; steps <= 8; ++steps) {
    SCOPED_TRACE(testing::Message() << steps << " steps");
    initialized_ = drained_ = false;
    RunSpec spec = Spec();
    spec.training.max_steps = steps;
    Train(spec);
    std::set<uint64_t> handed_out;
    while (Ask(ada_) == WorkState::kUnit) {
      for (uint64_t i = 0; i < last_unit_.batches; ++i) handed_out.insert(last_unit_.first + i);
      ASSERT_TRUE(Report(ada_, last_unit_.number, last_unit_.batches).ok());
    }

    EXPECT_EQ(handed_out.size(), steps);
    EXPECT_EQ(*handed_out.rbegin(), steps - 1);
    EXPECT_EQ(coordinator().phase(), Phase::kDraining);
    EXPECT_EQ(coordinator().batches_total(), steps);
    EXPECT_EQ(coordinator().epochs_done(), steps / 4);
    EXPECT_EQ(coordinator().end_reason(), steps < 8 ? EndReason::kMaxSteps : EndReason::kEpochs);
  }
}

TEST_F(CoordinatorStopTest, HardsyncShardsLearnOfTheLimitWithTheModel) {
  RunSpec spec = Spec(Policy::kHardsync);
  spec.training.max_steps = 5;
  Train(spec);

  EXPECT_EQ(coordinator().orders().model->batches_total, 5u);
  drained_ = true;
  Sync();

  EXPECT_EQ(coordinator().batches_done(), 5u);
  EXPECT_EQ(coordinator().end_reason(), EndReason::kMaxSteps);
}

TEST_F(CoordinatorStopTest, WhenTimeIsOverWorkersFinishTheStepTheyAreAt) {
  RunSpec spec = Spec();
  spec.training.batch_size = 1;  // 100 mini-batches an epoch, so units are large.
  spec.training.max_seconds = 10;
  Train(spec);
  ASSERT_EQ(Ask(ada_), WorkState::kUnit);
  const WorkLedger::Unit ada_unit = last_unit_;
  ASSERT_GT(ada_unit.batches, 2u);
  ASSERT_EQ(Ask(bob_), WorkState::kUnit);

  ASSERT_NO_FATAL_FAILURE(Pass(absl::Seconds(9), {ada_, bob_}));
  EXPECT_FALSE(coordinator().WorkEnds());
  ASSERT_NO_FATAL_FAILURE(Pass(absl::Seconds(1), {ada_, bob_}));

  EXPECT_TRUE(coordinator().WorkEnds());
  EXPECT_EQ(coordinator().phase(), Phase::kTraining) << "both are at a step";
  EXPECT_EQ(Ask(ada_), WorkState::kFinished);
  ASSERT_TRUE(Report(ada_, ada_unit.number, 2).ok());
  ASSERT_TRUE(coordinator().OnDonePushing(ada_, now_).ok());
  EXPECT_EQ(coordinator().phase(), Phase::kTraining);
  ASSERT_TRUE(coordinator().OnDonePushing(bob_, now_).ok());
  EXPECT_EQ(coordinator().phase(), Phase::kDraining);
  EXPECT_EQ(coordinator().batches_done(), 2u);
  ASSERT_NO_FATAL_FAILURE(Finish());
  EXPECT_EQ(coordinator().end_reason(), EndReason::kMaxSeconds);
}

TEST_F(CoordinatorStopTest, WhoeverAsksEndsTrainingAsIfTimeWereOver) {
  for (const Policy policy : {Policy::kHardsync, Policy::kAsync}) {
    initialized_ = drained_ = false;
    Train(Spec(policy));

    ASSERT_TRUE(coordinator().OnEndTraining(EndReason::kInterrupted, now_).ok());

    EXPECT_TRUE(coordinator().WorkEnds());
    EXPECT_EQ(coordinator().orders().ends_work, policy == Policy::kHardsync);
    ASSERT_TRUE(coordinator().OnEndTraining(EndReason::kInterrupted, now_).ok())
        << "asking twice changes nothing";
    drained_ = true;
    Sync();
    ASSERT_NO_FATAL_FAILURE(Finish());
    EXPECT_EQ(coordinator().end_reason(), EndReason::kInterrupted);
    EXPECT_EQ(coordinator().OnEndTraining(EndReason::kInterrupted, now_).code(),
              absl::StatusCode::kOutOfRange);
  }
}

TEST_F(CoordinatorStopTest, ARunThatWasOverByItselfKeepsItsReason) {
  Train(Spec());
  WorkAllAs(ada_);

  ASSERT_TRUE(coordinator().OnEndTraining(EndReason::kInterrupted, now_).ok());

  ASSERT_NO_FATAL_FAILURE(Finish());
  EXPECT_EQ(coordinator().end_reason(), EndReason::kEpochs);
}

TEST_F(CoordinatorStopTest, WhereNobodyMeasuresTheLastUpdateEndsTheRun) {
  RunSpec spec = Spec();
  spec.evaluation = {.by = EvaluationSpec::By::kNobody, .every_epochs = 1};
  Train(spec);
  WorkAllAs(ada_);
  ASSERT_EQ(coordinator().phase(), Phase::kDraining);

  drained_ = true;
  Sync();

  EXPECT_EQ(coordinator().phase(), Phase::kFinished);
  EXPECT_TRUE(coordinator().evaluations().results().empty());
}

TEST_F(CoordinatorStopTest, ThereIsNothingToEndBeforeTraining) {
  Use(Spec());

  const absl::Status early = coordinator().OnEndTraining(EndReason::kInterrupted, now_);

  EXPECT_EQ(early.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(early.message(), HasSubstr("training has not begun"));
}

TEST_F(CoordinatorStopTest, ADeadWorkerDoesNotHoldUpTheEnd) {
  RunSpec spec = Spec();
  spec.training.max_seconds = 2;
  Train(spec);
  ASSERT_EQ(Ask(bob_), WorkState::kUnit);

  ASSERT_NO_FATAL_FAILURE(Pass(absl::Seconds(4), {ada_}));
  EXPECT_EQ(coordinator().phase(), Phase::kTraining);
  ASSERT_NO_FATAL_FAILURE(Pass(absl::Seconds(4), {ada_}));

  EXPECT_EQ(coordinator().phase(), Phase::kDraining);
}

TEST_F(CoordinatorStopTest, HardsyncEndsWithTheRoundThatIsOpen) {
  RunSpec spec = Spec(Policy::kHardsync);
  spec.training.max_seconds = 3;
  Train(spec);
  const uint64_t before = coordinator().orders().number;

  ASSERT_NO_FATAL_FAILURE(Pass(absl::Seconds(3), {ada_, bob_}));

  EXPECT_TRUE(coordinator().orders().ends_work);
  EXPECT_GT(coordinator().orders().number, before);
  EXPECT_EQ(coordinator().phase(), Phase::kTraining);
  batches_ = 2;
  drained_ = true;
  Sync();
  EXPECT_EQ(coordinator().batches_done(), 2u) << "not all of the run's";
  EXPECT_EQ(coordinator().epochs_done(), 0u);
  ASSERT_NO_FATAL_FAILURE(Finish());
  EXPECT_EQ(coordinator().end_reason(), EndReason::kMaxSeconds);
}

TEST_F(CoordinatorStopTest, AnEvaluationThatReachesTheTargetEndsTheRunAsASuccess) {
  RunSpec spec = Spec();
  spec.training.epochs = 5;
  spec.training.target_accuracy = 0.8;
  Train(spec);
  for (uint32_t epoch = 1; epoch <= 2; ++epoch) {
    while (coordinator().epochs_done() < epoch) {
      ASSERT_EQ(Ask(ada_), WorkState::kUnit);
      ASSERT_TRUE(Report(ada_, last_unit_.number, last_unit_.batches).ok());
    }
    EXPECT_FALSE(coordinator().WorkEnds());
    ASSERT_NO_FATAL_FAILURE(Measure(epoch == 1 ? 0.79 : 0.8));
  }

  EXPECT_EQ(coordinator().phase(), Phase::kDraining) << "nobody holds work";
  ASSERT_NO_FATAL_FAILURE(Finish());
  EXPECT_EQ(coordinator().end_reason(), EndReason::kTargetAccuracy);
  EXPECT_EQ(coordinator().failure(), "");
}

TEST_F(CoordinatorStopTest, WorkersThatAllLeaveMayComeBackAndGoOn) {
  Train(Spec());
  ASSERT_TRUE(coordinator().OnLeave(ada_, "", now_).ok());
  ASSERT_TRUE(coordinator().OnLeave(bob_, "", now_).ok());
  Sync();
  EXPECT_EQ(coordinator().phase(), Phase::kTraining) << "the work is not done";

  const auto back = coordinator().OnRegister({.worker = WorkerId{1}}, now_);
  ASSERT_TRUE(back.ok()) << back.status();
  Sync();
  EXPECT_EQ(Ask(*back), WorkState::kUnit);
}

TEST_F(CoordinatorStopTest, ARunThatAllWorkersLeaveForGoodFails) {
  Train(Spec());
  ASSERT_TRUE(coordinator().OnLeave(ada_, "", now_).ok());
  ASSERT_TRUE(coordinator().OnLeave(bob_, "", now_).ok());

  Pass(absl::Minutes(3), {});

  EXPECT_EQ(coordinator().phase(), Phase::kFailed);
  EXPECT_THAT(coordinator().failure(), HasSubstr("all workers are gone"));
}

TEST_F(CoordinatorStopTest, AHardsyncRunWhoseTimeIsUpEndsThoughAllWorkersLeave) {
  RunSpec spec = Spec(Policy::kHardsync);
  spec.training.max_seconds = 3;
  Train(spec);
  ASSERT_NO_FATAL_FAILURE(Pass(absl::Seconds(3), {ada_, bob_}));

  ASSERT_TRUE(coordinator().OnLeave(ada_, "", now_).ok());
  ASSERT_TRUE(coordinator().OnLeave(bob_, "", now_).ok());

  EXPECT_EQ(coordinator().phase(), Phase::kDraining);
  EXPECT_EQ(coordinator().end_reason(), EndReason::kMaxSeconds);
}

}  // namespace

namespace {

TrainingSpec Training(uint32_t epochs, uint64_t max_steps) {
  TrainingSpec training;
  training.epochs = epochs;
  training.max_steps = max_steps;
  return training;
}

struct StepsCase {
  std::string name;
  uint32_t epochs = 1;
  uint64_t max_steps = 0;
  uint64_t steps = 0;  // An epoch has 10 mini-batches.
  EndReason reason = EndReason::kEpochs;
};

class StepsTest : public testing::TestWithParam<StepsCase> {};

TEST_P(StepsTest, AreTheFewerOfTheEpochsAndTheLimit) {
  const StepsCase& expected = GetParam();
  const StopConditions conditions(Training(expected.epochs, expected.max_steps));

  EXPECT_EQ(conditions.Steps(10), expected.steps);
  EXPECT_EQ(conditions.ReasonOfLastStep(10), expected.reason);
}

INSTANTIATE_TEST_SUITE_P(
    Table, StepsTest,
    testing::Values(StepsCase{"NoLimit", 3, 0, 30, EndReason::kEpochs},
                    StepsCase{"One", 3, 1, 1, EndReason::kMaxSteps},
                    StepsCase{"WithinAnEpoch", 3, 14, 14, EndReason::kMaxSteps},
                    StepsCase{"AtTheEndOfAnEpoch", 3, 20, 20, EndReason::kMaxSteps},
                    StepsCase{"OneBeforeTheLast", 3, 29, 29, EndReason::kMaxSteps},
                    StepsCase{"TheLast", 3, 30, 30, EndReason::kEpochs},
                    StepsCase{"BeyondTheLast", 3, 31, 30, EndReason::kEpochs}),
    [](const auto& each) { return each.param.name; });

struct EarlyCase {
  std::string name;
  double max_seconds = 0;
  double target = 0;
  absl::Duration trained;
  std::optional<double> accuracy;
  std::optional<EndReason> reason;
};

class EarlyEndTest : public testing::TestWithParam<EarlyCase> {};

TEST_P(EarlyEndTest, ComesWithTheFirstConditionThatHolds) {
  const EarlyCase& expected = GetParam();
  TrainingSpec training;
  training.max_seconds = expected.max_seconds;
  training.target_accuracy = expected.target;

  EXPECT_EQ(StopConditions(training).EndsEarly({expected.trained, expected.accuracy}),
            expected.reason);
}

constexpr absl::Duration kLong = absl::Hours(1000);

INSTANTIATE_TEST_SUITE_P(
    Table, EarlyEndTest,
    testing::Values(
        EarlyCase{"NoCondition", 0, 0, kLong, 1.0, std::nullopt},
        EarlyCase{"TimeNotOver", 2, 0, absl::Milliseconds(1999), std::nullopt, std::nullopt},
        EarlyCase{"TimeOver", 2, 0, absl::Seconds(2), std::nullopt, EndReason::kMaxSeconds},
        EarlyCase{"FractionsOfASecond", 0.5, 0, absl::Milliseconds(500), std::nullopt,
                  EndReason::kMaxSeconds},
        EarlyCase{"NotMeasured", 0, 0.9, kLong, std::nullopt, std::nullopt},
        EarlyCase{"BelowTheTarget", 0, 0.9, kLong, 0.8999, std::nullopt},
        EarlyCase{"TargetReached", 0, 0.9, kLong, 0.9, EndReason::kTargetAccuracy},
        EarlyCase{"BothAtOnceIsASuccess", 2, 0.9, kLong, 0.95, EndReason::kTargetAccuracy}),
    [](const auto& each) { return each.param.name; });

}  // namespace

}  // namespace slipstream
