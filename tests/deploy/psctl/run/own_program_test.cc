#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "deploy/psctl/run/child_process.h"
#include "tests/deploy/psctl/run/psctl_run_fixture.h"

namespace slipstream {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

/// Runs with a program of the user, whose workers do what is said for each.
class PsctlOwnProgramTest : public PsctlRunTest {
 protected:
  PsctlOwnProgramTest() { EXPECT_EQ(mkfifo((folder_ / "go").c_str(), 0600), 0); }

  ChildProcess StartOwn(std::vector<std::string> more = {}) {
    more.insert(more.end(),
                {"--", "bash", "-c", R"(action="OWN_$SLIPSTREAM_WORKER"; eval "${!action}")"});
    return StartRun(more);
  }

  void LetThemEnd() const { std::ofstream(folder_ / "go") << "go\n"; }
};

TEST_F(PsctlOwnProgramTest, MayGoOnAfterTheRunUntilItEnds) {
  Say("OWN_0", R"(touch "$FAKE_DIR/finished"; read -r < "$FAKE_DIR/go"; touch "$FAKE_DIR/saved")");
  Say("OWN_1", "exit 0");
  ChildProcess psctl = StartOwn();
  ASSERT_TRUE(WaitForText("; waiting for worker 0 to end; Ctrl-C does not wait\n")) << Stderr();

  LetThemEnd();

  EXPECT_EQ(WaitForExit(psctl), 0) << Stderr();
  EXPECT_TRUE(fs::exists(folder_ / "saved"));
}

TEST_F(PsctlOwnProgramTest, IsAnErrorIfItOutlastsItsTime) {
  Say("OWN_0", R"(touch "$FAKE_DIR/finished"; exec tail -f /dev/null)");
  Say("OWN_1", "exit 0");

  ChildProcess psctl = StartOwn({"--set", "run.finish_timeout=100ms"});

  EXPECT_EQ(WaitForExit(psctl), 74);
  const std::string error =
      "worker 0 had not ended 100 ms after the run (run.finish_timeout), and was killed; what it "
      "had yet to save is lost; log: " +
      LogPath("worker-0");
  EXPECT_THAT(Stderr(), EndsWith("psctl: error: " + error + "\n"));
  EXPECT_EQ(Summary()["error"], error);
  EXPECT_EQ(Summary()["exit_code"], 74);
}

TEST_F(PsctlOwnProgramTest, EndsAtOnceWhenPsctlIsStoppedAfterTheRun) {
  Say("OWN_0", R"(touch "$FAKE_DIR/finished"; exec tail -f /dev/null)");
  Say("OWN_1", "exit 0");
  ChildProcess psctl = StartOwn();
  ASSERT_TRUE(WaitForText("; waiting for worker 0 to end")) << Stderr();

  kill(psctl.pid(), SIGTERM);

  EXPECT_EQ(WaitForExit(psctl), 143);
  EXPECT_THAT(Summary()["error"].get<std::string>(),
              StartsWith("worker 0 had not ended when psctl was stopped by signal 15 (Terminated), "
                         "and was killed"));
  EXPECT_EQ(Summary()["ended_by"], "epochs");
}

TEST_F(PsctlOwnProgramTest, MaySaveAlthoughAnotherHasFailedAfterTheRun) {
  Say("OWN_0", R"(touch "$FAKE_DIR/finished"; exit 3)");
  Say("OWN_1", R"(read -r < "$FAKE_DIR/go"; touch "$FAKE_DIR/saved")");
  ChildProcess psctl = StartOwn();
  ASSERT_TRUE(WaitForText("; waiting for worker 1 to end")) << Stderr();

  LetThemEnd();

  EXPECT_EQ(WaitForExit(psctl), 1) << Stderr();
  EXPECT_THAT(Stderr(), HasSubstr("psctl: error: worker 0 failed with exit code 3\n"));
  EXPECT_TRUE(fs::exists(folder_ / "saved"));
}

TEST_F(PsctlOwnProgramTest, IsAnErrorIfItIsKilledAfterTheRun) {
  Say("OWN_0", R"(touch "$FAKE_DIR/finished"; read -r < "$FAKE_DIR/go"; kill -KILL $$)");
  Say("OWN_1", "exit 0");
  ChildProcess psctl = StartOwn();
  ASSERT_TRUE(WaitForText("; waiting for worker 0 to end")) << Stderr();

  LetThemEnd();

  EXPECT_EQ(WaitForExit(psctl), 74);
  EXPECT_THAT(Stderr(), HasSubstr("psctl: error: worker 0 was killed by signal 9 (Killed) after "
                                  "the run; what it had yet to save is lost"));
}

}  // namespace
}  // namespace slipstream
