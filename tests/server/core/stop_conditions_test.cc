#include "server/core/stop_conditions.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace slipstream {
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
