#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <csignal>
#include <fstream>
#include <string>

#include "deploy/psctl/run/child_process.h"
#include "tests/deploy/psctl/run/psctl_run_fixture.h"

// Tests of psctl run that a batch system asks to leave.

namespace slipstream {
namespace {

using testing::HasSubstr;

class PsctlPreemptionTest : public PsctlRunTest {
 protected:
  /// Returns a command that goes on until SIGTERM, and then notes `word` and ends with `code`.
  static std::string UntilTold(const std::string& word, int code) {
    return "trap 'echo " + word + " >> \"$FAKE_DIR/order\"; exit " + std::to_string(code) +
           "' TERM; touch \"$FAKE_DIR/" + word + "\"; while :; do read -rt 1 <> <(:); done";
  }

  int Preempt(ChildProcess& psctl, const std::string& word) {
    EXPECT_TRUE(WaitForText("training 25")) << Stderr();
    EXPECT_TRUE(WaitUntil([&] { return fs::exists(folder_ / word); }));
    kill(psctl.pid(), SIGUSR1);
    return WaitForExit(psctl);
  }
};

TEST_F(PsctlPreemptionTest, WorkersLeaveThenServersSaveAndTheCodeSaysThatItMayGoOn) {
  Say("FAKE_WORKER_1", UntilTold("worker", 143));
  Say("FAKE_SERVER_1", UntilTold("server", 143));
  ChildProcess psctl = StartRun({"--set", "durability.level=checkpoint"});
  ASSERT_TRUE(WaitUntil([&] { return fs::exists(folder_ / "server"); }));

  EXPECT_EQ(Preempt(psctl, "worker"), 79);

  EXPECT_TRUE(fs::exists(folder_ / "finished.checkpoint"));
  EXPECT_EQ(ReadFile(folder_ / "order"), "worker\nserver\n");
  EXPECT_THAT(Stderr(), HasSubstr("psctl: stopped by signal 10 (User defined signal 1) in epoch 2, "
                                  "after 100 updates; what there was is saved; to go on, run it "
                                  "again with --set durability.directory=" +
                                  (folder_ / "run/checkpoints").string()));
  EXPECT_EQ(Summary()["ended_by"], "interrupted");
  EXPECT_EQ(Summary()["exit_code"], 79);
  EXPECT_TRUE(NoneIsRunning());
}

TEST_F(PsctlPreemptionTest, AServerThatCouldNotSaveIsNamed) {
  Say("FAKE_SERVER_1", UntilTold("server", 74));
  ChildProcess psctl = StartRun({"--set", "durability.level=checkpoint"});

  EXPECT_EQ(Preempt(psctl, "server"), 74);

  EXPECT_THAT(Stderr(), HasSubstr("server 1 ended with exit code 74 (input or output), and may "
                                  "not have saved"));
}

TEST_F(PsctlPreemptionTest, BeforeTheServersHaveBegunThereIsNothingToLose) {
  Say("FAKE_SERVER_0", R"(touch "$FAKE_DIR/up"; exec tail -f /dev/null)");
  ChildProcess psctl = StartRun({"--set", "durability.level=checkpoint"});
  ASSERT_TRUE(WaitUntil([&] { return fs::exists(folder_ / "up"); }));

  kill(psctl.pid(), SIGUSR1);

  EXPECT_EQ(WaitForExit(psctl), 79) << Stderr();
  EXPECT_EQ(Summary()["exit_code"], 79);
}

TEST_F(PsctlPreemptionTest, AServerThatIsToStartAgainHasSavedWhatItCould) {
  Say("FAKE_SERVER_1", "kill -KILL $$");
  ChildProcess psctl = StartRun({"--restart", "--set", "durability.level=checkpoint"});
  ASSERT_TRUE(WaitForText("it starts again in 4.00 s (3 of 5)\n")) << Stderr();

  kill(psctl.pid(), SIGUSR1);

  EXPECT_EQ(WaitForExit(psctl), 79) << Stderr();
}

TEST_F(PsctlPreemptionTest, WithoutCheckpointsItEndsTrainingAndSavesTheWeights) {
  std::ofstream(folder_ / "finished.saves") << "";
  for (const char* worker : {"FAKE_WORKER_0", "FAKE_WORKER_1"}) {
    Say(worker, R"(touch "$FAKE_DIR/up"
                   until [[ -e "$FAKE_DIR/finished" ]]; do read -rt 0.05 <> <(:); done; exit 0)");
  }
  ChildProcess psctl = StartRun();

  EXPECT_EQ(Preempt(psctl, "up"), 128 + SIGUSR1);

  EXPECT_FALSE(fs::exists(folder_ / "finished.checkpoint"));
  EXPECT_EQ(Summary()["weights_sha256"], "ab12");
}

}  // namespace
}  // namespace slipstream
