#include "deploy/psctl/run/failure_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <vector>

#include "tests/deploy/psctl/example_status.h"

namespace slipstream {
namespace {

using testing::HasSubstr;

v1::RunStatus InPhase(v1::Phase phase) {
  v1::RunStatus status;
  status.set_phase(phase);
  return status;
}

TEST(FailureReportTest, NamesTheProcessItsLastWordsAndItsLog) {
  const std::vector<ProcessEnd> ends = {{.name = {Role::kWorker, 0}, .exit_code = 69},
                                        {.name = {Role::kWorker, 1}, .exit_code = 78}};

  v1::RunStatus status;
  status.set_failure("worker 1 left");

  const FailureReport report = DescribeFailure(ends, {.status = status,
                                                      .log_path = "runs/x/logs/worker-1.log",
                                                      .log_lines = {"error: no such data set"}});

  EXPECT_EQ(report.exit_code, ExitCode::kConfiguration);
  EXPECT_EQ(report.message, "worker 1 failed with exit code 78 (configuration)");
  EXPECT_EQ(report.text,
            "psctl: error: worker 1 failed with exit code 78 (configuration)\n"
            "  the coordinator says: worker 1 left\n"
            "  | error: no such data set\n"
            "  log: runs/x/logs/worker-1.log\n");
}

TEST(FailureReportTest, NamesTheSignalOfACrashedServer) {
  const std::vector<ProcessEnd> ends = {{.name = {Role::kServer, 1}, .signal = SIGSEGV}};

  const FailureReport report = DescribeFailure(ends, {});

  EXPECT_EQ(report.exit_code, ExitCode::kInternal);
  EXPECT_EQ(report.text, "psctl: error: server 1 was killed by signal 11 (Segmentation fault)\n");
}

TEST(FailureReportTest, AServerThatSavesIsSaidToGoOn) {
  const std::vector<ProcessEnd> ends = {{.name = {Role::kServer, 1}, .exit_code = 71}};
  v1::RunStatus status = ExampleStatus();
  status.set_checkpoint_interval_seconds(10);

  EXPECT_THAT(DescribeFailure(ends, {.status = status}).message,
              testing::HasSubstr("started again, it goes on with shard 1 (parameters 30000 to"));
}

TEST(FailureReportTest, SaysWhatWasLostWithAServerAndWhatToDo) {
  const std::vector<ProcessEnd> ends = {{.name = {Role::kServer, 1}, .signal = SIGKILL}};

  const FailureReport report =
      DescribeFailure(ends, {.status = ExampleStatus(), .log_path = "d/logs/server-1.log"});

  EXPECT_EQ(report.message,
            "server 1 was killed by signal 9 (Killed); the weights of shard 1 (parameters 30000 to "
            "61705 of 61706) are lost with it, so the run cannot go on");
  EXPECT_EQ(report.text, "psctl: error: " + report.message +
                             "\n"
                             "  reached: epoch 2, 100 updates\n"
                             "  why: signal 9 comes from a user, or from a system that is out of "
                             "memory (see dmesg)\n"
                             "  next: run it again; no model was saved on the way, as --set "
                             "model.save_every_epochs=1 does\n"
                             "  log: d/logs/server-1.log\n");
}

TEST(FailureReportTest, NamesTheModelsThatWereSavedBefore) {
  const std::vector<ProcessEnd> ends = {{.name = {Role::kServer, 0}, .signal = SIGSEGV}};

  const FailureReport report = DescribeFailure(
      ends, {.status = ExampleStatus(), .models = {"d/one.safetensors", "d/two.safetensors"}});

  EXPECT_THAT(report.text, HasSubstr("  saved: d/one.safetensors\n"
                                     "  saved: d/two.safetensors\n"
                                     "  next: run it again, from the last saved model with --set "
                                     "model.init=d/two.safetensors\n"));
}

TEST(FailureReportTest, NothingIsLostWithAServerBeforeTraining) {
  const std::vector<ProcessEnd> ends = {{.name = {Role::kServer, 1}, .signal = SIGKILL}};

  const FailureReport report = DescribeFailure(ends, {.status = InPhase(v1::INITIALIZING)});

  EXPECT_EQ(report.text, "psctl: error: server 1 was killed by signal 9 (Killed)\n");
}

TEST(FailureReportTest, SaysThatNobodyIsLeft) {
  const std::vector<ProcessEnd> ends = {{.name = {Role::kWorker, 0}, .signal = SIGKILL}};

  const FailureReport report =
      DescribeFailure(ends, {.verdict = Verdict::kWorkersGone, .status = InPhase(v1::TRAINING)});

  EXPECT_EQ(report.exit_code, ExitCode::kInternal);
  EXPECT_EQ(
      report.text,
      "psctl: error: all workers ended before the run was over: training; worker 0 was killed "
      "by signal 9 (Killed)\n"
      "  reached: epoch 1, 0 updates\n");
}

TEST(FailureReportTest, NamesTheWorkerWithoutWhichTheRunCannotStart) {
  const std::vector<ProcessEnd> ends = {{.name = {Role::kWorker, 1}, .exit_code = 69}};

  const FailureReport report = DescribeFailure(
      ends, {.verdict = Verdict::kWorkerMissing, .log_lines = {"error: no way to node1"}});

  EXPECT_EQ(report.exit_code, ExitCode::kUnreachable);
  EXPECT_EQ(report.text,
            "psctl: error: the run cannot start without all of its workers; worker 1 failed with "
            "exit code 69 (peer unreachable)\n"
            "  | error: no way to node1\n");
}

TEST(FailureReportTest, LetsNobodyWriteToTheTerminal) {
  v1::RunStatus status;
  status.set_failure("\x1b[2J\nfine");

  const FailureReport report = DescribeFailure({}, {.status = status, .log_lines = {"\x1b]0;x"}});

  EXPECT_EQ(report.text,
            "psctl: error: the run failed\n"
            "  the coordinator says: \uFFFD[2J fine\n"
            "  | \uFFFD]0;x\n");
}

TEST(FailureReportTest, SaysWhatTheStartWaitedFor) {
  const FailureReport report = DescribeFailure({}, {.verdict = Verdict::kNotStarted,
                                                    .status = InPhase(v1::WAITING_FOR_WORKERS),
                                                    .start_timeout = absl::Seconds(120)});

  EXPECT_EQ(report.exit_code, ExitCode::kUnreachable);
  EXPECT_EQ(report.text, "psctl: error: the run did not start within 2m00s: waiting for workers\n");
}

TEST(FailureReportTest, TellsOfALostWorker) {
  const ProcessEnd end = {.name = {Role::kWorker, 2}, .signal = SIGKILL};

  EXPECT_EQ(DescribeLostWorker(end, 3, false),
            "psctl: warning: worker 2 was lost: signal 9 (Killed); the run goes on with 3 "
            "workers");
  EXPECT_EQ(DescribeLostWorker(end, 0, false),
            "psctl: warning: worker 2 was lost: signal 9 (Killed); no worker is left");
  EXPECT_EQ(
      DescribeLostWorker(end, 3, true),
      "psctl: warning: worker 2 was lost: signal 9 (Killed); where rounds need it, the run waits "
      "for another in its place (cluster.on_worker_loss), such as ps_worker --worker 2");
  EXPECT_EQ(DescribeLostWorker(end, 0, true),
            "psctl: warning: worker 2 was lost: signal 9 (Killed); no worker is left");
}

TEST(FailureReportTest, TellsOfAProcessThatStartsAgain) {
  EXPECT_EQ(DescribeRestart({.name = {Role::kServer, 1}, .signal = SIGKILL},
                            {.starts = true, .pause = absl::Milliseconds(250), .number = 1}, 5),
            "psctl: warning: shard 1's server was killed by signal 9 (Killed); it starts again in "
            "250 ms (1 of 5)");
  EXPECT_EQ(DescribeRestart({.name = {Role::kAggregator, 1}, .exit_code = 69},
                            {.starts = true, .pause = absl::Seconds(4), .number = 3}, 5),
            "psctl: warning: aggregator 0.1 failed with exit code 69 (peer unreachable); it starts "
            "again in 4.00 s (3 of 5)");
  EXPECT_EQ(
      DescribeRestart({.name = {Role::kWorker, 2}, .exit_code = 1},
                      {.why_not = "it failed at the same place before"}, 5),
      "psctl: warning: worker 2 failed with exit code 1 (failed); it is not started again: it "
      "failed at the same place before");
}

}  // namespace
}  // namespace slipstream
