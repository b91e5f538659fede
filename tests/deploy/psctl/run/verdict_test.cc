#include "deploy/psctl/run/verdict.h"

#include <gtest/gtest.h>

#include <csignal>
#include <string>
#include <vector>

namespace slipstream {
namespace {

struct Row {
  std::string name;
  RunFacts facts;
  std::vector<ProcessEnd> ends;
  Verdict verdict;
  size_t ends_after_phase = 0;
};

RunFacts Facts(v1::Phase phase, int in_phase_seconds, uint32_t workers_running = 2,
               int without_workers_seconds = 0) {
  return {.phase = phase,
          .in_phase = absl::Seconds(in_phase_seconds),
          .ends = {},
          .workers_running = workers_running,
          .without_workers = absl::Seconds(without_workers_seconds),
          .start_timeout = absl::Seconds(60)};
}

RunFacts Finished(int in_phase_seconds) {
  RunFacts facts = Facts(v1::FINISHED, in_phase_seconds);
  facts.finish_timeout = absl::Seconds(10);
  return facts;
}

RunFacts WithReaders(RunFacts facts) {
  facts.has_readers = true;
  return facts;
}

class RunVerdictTest : public testing::TestWithParam<Row> {};

TEST_P(RunVerdictTest, FollowsFromTheFacts) {
  RunFacts facts = GetParam().facts;
  facts.ends = GetParam().ends;
  facts.ends_before_phase = GetParam().ends.size() - GetParam().ends_after_phase;

  EXPECT_EQ(Judge(facts), GetParam().verdict);
}

const ProcessEnd kKilledWorker = {.name = {Role::kWorker, 1}, .signal = SIGKILL};
const ProcessEnd kFencedWorker = {.name = {Role::kWorker, 0}, .exit_code = 75};
const ProcessEnd kFailedWorker = {.name = {Role::kWorker, 1}, .exit_code = 1};
const ProcessEnd kLostAggregator = {.name = {.role = Role::kAggregator, .number = 0, .group = 1},
                                    .exit_code = 75};
const ProcessEnd kDoneWorker = {.name = {Role::kWorker, 1}, .exit_code = 0};

INSTANTIATE_TEST_SUITE_P(
    All, RunVerdictTest,
    testing::Values(
        Row{"TrainingGoesOnForEver", Facts(v1::TRAINING, 1'000'000), {}, Verdict::kGoOn},
        Row{"AKilledWorkerIsTolerated", Facts(v1::TRAINING, 1), {kKilledWorker}, Verdict::kGoOn},
        Row{"AWorkerThatIsDoneIsTolerated", Facts(v1::DRAINING, 1), {kDoneWorker}, Verdict::kGoOn},
        Row{"AFailedWorkerIsNot", Facts(v1::TRAINING, 1), {kFailedWorker}, Verdict::kProcessFailed},
        Row{"FailedWaitsForTheCause", Facts(v1::FAILED, 2), {}, Verdict::kGoOn},
        Row{"FailedWithoutACause", Facts(v1::FAILED, 4), {}, Verdict::kRunFailed},
        Row{"FailedAndNobodyIsLeftToExplainIt",
            Facts(v1::FAILED, 0, 0),
            {kFencedWorker},
            Verdict::kRunFailed},
        Row{"AWorkerThatHadNoRoomToBegin",
            Facts(v1::INITIALIZING, 1, 1),
            {kFencedWorker},
            Verdict::kProcessFailed},
        Row{"AnAggregatorIsNeededToBegin",
            Facts(v1::WAITING_FOR_SERVERS, 1),
            {kLostAggregator},
            Verdict::kProcessFailed},
        Row{"ALostAggregatorIsTolerated",
            Facts(v1::INITIALIZING, 1),
            {kLostAggregator},
            Verdict::kGoOn},
        Row{"TheCoordinatorMayNoticeFirst", Facts(v1::TRAINING, 9, 0, 2), {}, Verdict::kGoOn},
        Row{"NobodyIsLeft", Facts(v1::TRAINING, 9, 0, 4), {kKilledWorker}, Verdict::kWorkersGone},
        Row{"AFencedWorkerIsTolerated", Facts(v1::TRAINING, 1), {kFencedWorker}, Verdict::kGoOn},
        Row{"TheLastWorkerIsFenced",
            Facts(v1::TRAINING, 9, 0, 4),
            {kKilledWorker, kFencedWorker},
            Verdict::kWorkersGone},
        Row{"NoLostWorkerComesBackToTheStart",
            Facts(v1::WAITING_FOR_WORKERS, 1, 1),
            {kKilledWorker},
            Verdict::kWorkerMissing},
        Row{"NorWhereServersAreMissing",
            Facts(v1::WAITING_FOR_SERVERS, 1, 1),
            {kFencedWorker},
            Verdict::kWorkerMissing},
        Row{"AllMayHaveComeSinceThePhaseWasAskedFor",
            Facts(v1::WAITING_FOR_WORKERS, 1, 1),
            {kKilledWorker},
            Verdict::kGoOn,
            1},
        Row{"AllHaveComeBefore", Facts(v1::INITIALIZING, 1, 1), {kKilledWorker}, Verdict::kGoOn},
        Row{"StartingMayTakeItsTime", Facts(v1::WAITING_FOR_WORKERS, 64), {}, Verdict::kGoOn},
        Row{"StartingMayNotTakeLonger",
            Facts(v1::WAITING_FOR_WORKERS, 66),
            {},
            Verdict::kNotStarted},
        Row{"ACoordinatorThatNeverAnswers",
            Facts(v1::PHASE_UNSPECIFIED, 66),
            {},
            Verdict::kNotStarted}),
    [](const testing::TestParamInfo<Row>& row) { return row.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Finished, RunVerdictTest,
    testing::Values(
        Row{"FinishedWaitsForWorkersToEnd", Facts(v1::FINISHED, 1'000'000), {}, Verdict::kGoOn},
        Row{"FinishedWaitsNoLongerThanItIsTold", Finished(11), {}, Verdict::kFinished},
        Row{"FinishedWaitsAsLongAsItIsTold", Finished(9), {}, Verdict::kGoOn},
        Row{"FinishedWithoutWorkers", Facts(v1::FINISHED, 0, 0), {}, Verdict::kFinished},
        Row{"FinishedDoesNotWaitForReadersForEver",
            WithReaders(Facts(v1::FINISHED, 11, 0)),
            {},
            Verdict::kFinished},
        Row{"FinishedWaitsForReaders", WithReaders(Facts(v1::FINISHED, 9, 0)), {}, Verdict::kGoOn},
        Row{"AWorkerThatFailsAfterTheRunEndsNoOther",
            Facts(v1::FINISHED, 1, 1),
            {kFailedWorker},
            Verdict::kGoOn},
        Row{"AWorkerThatFailedAfterTheRun",
            Facts(v1::FINISHED, 1, 0),
            {kFailedWorker},
            Verdict::kProcessFailed}),
    [](const testing::TestParamInfo<Row>& row) { return row.param.name; });

}  // namespace
}  // namespace slipstream
