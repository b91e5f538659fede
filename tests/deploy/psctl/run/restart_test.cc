#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "deploy/psctl/run/child_process.h"
#include "tests/deploy/psctl/run/psctl_run_fixture.h"

// Tests of psctl run --restart.

namespace slipstream {
namespace {

using testing::HasSubstr;
using testing::Not;

class PsctlRestartTest : public PsctlRunTest {
 protected:
  PsctlRestartTest() {
    EXPECT_EQ(mkfifo((folder_ / "go").c_str(), 0600), 0);
    Say("FAKE_WORKER_0", R"(read -r < "$FAKE_DIR/go"; touch "$FAKE_DIR/finished")");
    Say("FAKE_WORKER_1", "exit 0");
  }

  ChildProcess StartWithRestart() {
    return StartRun({"--restart", "--set", "durability.level=checkpoint"});
  }

  void LetTheRunFinish() const { std::ofstream(folder_ / "go") << "go\n"; }

  /// Returns how often a process was started that writes a line each time.
  auto Starts() const { return std::ranges::count(ReadFile(folder_ / "starts"), '\n'); }
};

TEST_F(PsctlRestartTest, AServerThatIsKilledIsStartedAgainAndTheRunGoesOn) {
  Say("FAKE_SERVER_1", R"(echo >> "$FAKE_DIR/starts"
                          [[ $(wc -l < "$FAKE_DIR/starts") == 1 ]] && kill -KILL $$; serve)");
  ChildProcess psctl = StartWithRestart();
  ASSERT_TRUE(
      WaitForText("psctl: warning: shard 1's server was killed by signal 9 (Killed); it starts "
                  "again in 250 ms (1 of 5)\n"))
      << Stderr();
  EXPECT_TRUE(WaitUntil([&] { return Starts() == 2; }));

  LetTheRunFinish();

  EXPECT_EQ(WaitForExit(psctl), 0) << Stderr();
  EXPECT_TRUE(NoneIsRunning());
}

TEST_F(PsctlRestartTest, AServerThatEndsAgainAndAgainFailsTheRun) {
  Say("FAKE_SERVER_1", R"(echo >> "$FAKE_DIR/starts"; kill -KILL $$)");

  ChildProcess psctl =
      StartRun({"--restart-max", "2", "--restart", "--set", "durability.level=checkpoint"});

  EXPECT_EQ(WaitForExit(psctl), 1);
  EXPECT_THAT(Stderr(), HasSubstr("psctl: error: server 1 was killed by signal 9 (Killed)"));
  EXPECT_THAT(Stderr(), HasSubstr("not started again: it was started again 2 times already"));
  EXPECT_EQ(Starts(), 3);
  EXPECT_TRUE(NoneIsRunning());
}

TEST_F(PsctlRestartTest, AWorkerThatIsKilledIsStartedAgainUnderItsId) {
  Say("FAKE_WORKER_1", R"(echo >> "$FAKE_DIR/starts"
                          [[ $(wc -l < "$FAKE_DIR/starts") == 1 ]] && kill -KILL $$
                          [[ $worker == 1 ]])");
  ChildProcess psctl = StartRun({"--restart"});
  ASSERT_TRUE(
      WaitForText("psctl: warning: worker 1 was killed by signal 9 (Killed); it starts "
                  "again in 250 ms (1 of 5)\n"))
      << Stderr();
  ASSERT_TRUE(WaitUntil([&] { return Starts() == 2; }));

  LetTheRunFinish();

  EXPECT_EQ(WaitForExit(psctl), 0) << Stderr();
  EXPECT_THAT(Stderr(), Not(HasSubstr("was lost")));
}

TEST_F(PsctlRestartTest, AWorkerThatFailsTwiceAtTheSamePlaceFailsTheRun) {
  // Only then psctl knows how far the worker had come.
  Say("FAKE_WORKER_1", R"(echo >> "$FAKE_DIR/starts"
                          until [[ -s "$FAKE_DIR/run/metrics.jsonl" ]]; do
                            read -rt 0.05 <> <(:)
                          done
                          exit 7)");

  ChildProcess psctl = StartRun({"--restart=workers"});

  EXPECT_EQ(WaitForExit(psctl), 1);
  EXPECT_THAT(Stderr(), HasSubstr("worker 1 failed with exit code 7; it starts again in 250 ms"));
  EXPECT_THAT(Stderr(), HasSubstr("it is not started again: it failed at the same place before"));
  EXPECT_THAT(Stderr(), HasSubstr("psctl: error: worker 1 failed with exit code 7"));
  EXPECT_EQ(Starts(), 2);
  EXPECT_TRUE(NoneIsRunning());
}

TEST_F(PsctlRestartTest, ARunThatFinishesDoesNotWaitForAWorkerThatIsToStartAgain) {
  Say("FAKE_WORKER_1", R"(echo >> "$FAKE_DIR/starts"; kill -KILL $$)");
  ChildProcess psctl = StartRun({"--restart=workers"});
  ASSERT_TRUE(WaitForText("it starts again in 4.00 s (3 of 5)\n")) << Stderr();

  LetTheRunFinish();

  EXPECT_EQ(WaitForExit(psctl), 0) << Stderr();
  EXPECT_EQ(Starts(), 3);
}

TEST_F(PsctlRestartTest, AServerThatReportsAnErrorOfItsOwnIsNotStartedAgain) {
  Say("FAKE_SERVER_1", "exit 78");

  ChildProcess psctl = StartWithRestart();

  EXPECT_EQ(WaitForExit(psctl), 78);
  EXPECT_THAT(Stderr(), Not(HasSubstr("starts again")));
  EXPECT_THAT(Stderr(), HasSubstr("it is not started again: it would only end so again"));
}

TEST_F(PsctlRestartTest, WithoutItAServerThatIsKilledFailsTheRun) {
  Say("FAKE_SERVER_1", "kill -KILL $$");

  ChildProcess psctl = StartRun({"--set", "durability.level=checkpoint"});

  EXPECT_EQ(WaitForExit(psctl), 1);
  EXPECT_THAT(Stderr(), Not(HasSubstr("started again")));
}

TEST_F(PsctlRestartTest, WithoutCheckpointsServersAreRefused) {
  ChildProcess psctl = StartRun({"--restart=all"});

  EXPECT_EQ(WaitForExit(psctl), 78);
  EXPECT_THAT(Stderr(), HasSubstr("--restart of servers needs checkpoints"));
  EXPECT_TRUE(Pids().empty());
  EXPECT_FALSE(fs::exists(folder_ / "run"));
}

TEST_F(PsctlRestartTest, CheckpointsLieInTheRunDirectory) {
  ChildProcess psctl = StartWithRestart();
  LetTheRunFinish();

  ASSERT_EQ(WaitForExit(psctl), 0) << Stderr();
  EXPECT_THAT(ReadFile(folder_ / "run/run.yaml"),
              HasSubstr((folder_ / "run/checkpoints").string()));
}

TEST_F(PsctlRestartTest, CheckpointsLieWhereTheSettingsSay) {
  ChildProcess psctl = StartRun({"--set", "durability.level=checkpoint", "--set",
                                 "durability.directory=" + (folder_ / "saved").string()});
  LetTheRunFinish();

  ASSERT_EQ(WaitForExit(psctl), 0) << Stderr();
  EXPECT_THAT(ReadFile(folder_ / "run/run.yaml"), HasSubstr((folder_ / "saved").string()));
  EXPECT_THAT(ReadFile(folder_ / "run/run.yaml"), Not(HasSubstr("run/checkpoints")));
}

}  // namespace
}  // namespace slipstream
