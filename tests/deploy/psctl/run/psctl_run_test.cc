#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "deploy/psctl/run/child_process.h"
#include "tests/deploy/psctl/run/psctl_run_fixture.h"
#include "tests/support/silent_port.h"

namespace slipstream {
namespace {

using testing::Contains;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

TEST_F(PsctlRunTest, ToleratesAKilledWorkerAndSumsUp) {
  ASSERT_EQ(mkfifo((folder_ / "go").c_str(), 0600), 0);
  Say("FAKE_WORKER_0", R"(read -r < "$FAKE_DIR/go"; touch "$FAKE_DIR/finished")");
  Say("FAKE_WORKER_1", "kill -KILL $$");
  ChildProcess psctl = StartRun();
  ASSERT_TRUE(
      WaitForText("psctl: warning: worker 1 was lost: signal 9 (Killed); the run goes on "
                  "with 1 worker\n"))
      << Stderr();

  std::ofstream(folder_ / "go") << "go\n";

  ASSERT_EQ(WaitForExit(psctl), 0) << Stderr();
  const auto summary = nlohmann::json::parse(Stdout());
  EXPECT_EQ(summary["test_accuracy"], 0.9);
  EXPECT_EQ(summary["run_dir"], (folder_ / "run").string());
  EXPECT_EQ(summary["workers_lost"], nlohmann::json::array({1}));
  EXPECT_EQ(summary["workers"][1]["failure"], "signal 9 (Killed)");
  EXPECT_EQ(ReadFile(folder_ / "run/summary.json"), Stdout());
  EXPECT_THAT(ReadFile(folder_ / "run/run.yaml"), HasSubstr("name: demo"));
  EXPECT_THAT(ReadFile(folder_ / "run/metrics.jsonl"), HasSubstr(R"("phase":"FINISHED")"));
  EXPECT_TRUE(NoneIsRunning());
}

TEST_F(PsctlRunTest, GoesOnWhenAWorkerIsFenced) {
  ASSERT_EQ(mkfifo((folder_ / "go").c_str(), 0600), 0);
  Say("FAKE_WORKER_0", R"(read -r < "$FAKE_DIR/go"; touch "$FAKE_DIR/finished")");
  Say("FAKE_WORKER_1", "exit 75");
  ChildProcess psctl = StartRun();
  ASSERT_TRUE(
      WaitForText("psctl: warning: worker 1 was lost: exit code 75 (temporary failure); the "
                  "run goes on with 1 worker\n"))
      << Stderr();

  std::ofstream(folder_ / "go") << "go\n";

  EXPECT_EQ(WaitForExit(psctl), 0) << Stderr();
}

TEST_F(PsctlRunTest, EndsAtOnceWhenAWorkerIsLostBeforeAllHaveCome) {
  std::ofstream(folder_ / "finished.waiting") << "";
  Say("FAKE_WORKER_1", "echo 'T worker-1 error   no memory' >&2; kill -KILL $$");

  ChildProcess psctl = StartRun();

  EXPECT_EQ(WaitForExit(psctl), 1);
  EXPECT_THAT(Stderr(), Not(HasSubstr("the run goes on")));
  EXPECT_THAT(Stderr(), EndsWith("psctl: error: the run cannot start without all of its workers; "
                                 "worker 1 was killed by signal 9 (Killed)\n"
                                 "  | T worker-1 error   no memory\n"
                                 "  log: " +
                                 LogPath("worker-1") + "\n"));
  EXPECT_TRUE(NoneIsRunning());
}

TEST_F(PsctlRunTest, GoesOnWhereStderrCannotBeWritten) {
  Say("FAKE_WORKER_0", R"(touch "$FAKE_DIR/finished")");
  Say("FAKE_WORKER_1", "exit 0");
  stderr_ = "/dev/full";

  ChildProcess psctl = StartRun();

  EXPECT_EQ(WaitForExit(psctl), 0);
  EXPECT_EQ(nlohmann::json::parse(Stdout())["test_accuracy"], 0.9);
}

TEST_F(PsctlRunTest, KeepsTheSummaryThatStdoutDoesNotTake) {
  Say("FAKE_WORKER_0", R"(touch "$FAKE_DIR/finished")");
  Say("FAKE_WORKER_1", "exit 0");
  stdout_ = "/dev/full";

  ChildProcess psctl = StartRun();

  EXPECT_EQ(WaitForExit(psctl), 74);
  EXPECT_EQ(Summary()["test_accuracy"], 0.9);
  EXPECT_THAT(Stderr(), EndsWith("psctl: error: the output could not be written\n"));
}

TEST_F(PsctlRunTest, KeepsTheSummaryWhenItsReaderIsGone) {
  Say("FAKE_WORKER_0", R"(touch "$FAKE_DIR/finished")");
  Say("FAKE_WORKER_1", "exit 0");

  auto shell = ChildProcess::Start(
      {.command = {"/bin/bash", "-c", R"("$0" run "$@" | true; exit "${PIPESTATUS[0]}")",
                   fs::absolute("deploy/psctl/psctl"), folder_ / "run.yaml", "--run-dir",
                   folder_ / "run", "--bin-dir", folder_ / "bin"},
       .environment = environment_,
       .stdout_path = stdout_,
       .stderr_path = stderr_});

  ASSERT_TRUE(shell.ok()) << shell.status();
  EXPECT_EQ(WaitForExit(*shell), 74) << Stderr();
  EXPECT_EQ(Summary()["test_accuracy"], 0.9);
}

TEST_F(PsctlRunTest, WarnsOnceOfMetricsThatCannotBeWritten) {
  fs::create_directories(folder_ / "run/metrics.jsonl");
  Say("FAKE_WORKER_0", R"(touch "$FAKE_DIR/finished")");
  Say("FAKE_WORKER_1", "exit 0");

  ChildProcess psctl = StartRun();

  EXPECT_EQ(WaitForExit(psctl), 0) << Stderr();
  const std::string warning = "psctl: warning: cannot write " +
                              (folder_ / "run/metrics.jsonl").string() + ": Is a directory";
  EXPECT_THAT(Stderr(), HasSubstr(warning));
  EXPECT_EQ(Stderr().find(warning), Stderr().rfind(warning));
}

TEST_F(PsctlRunTest, WritesNothingThroughALinkThatSomebodyHasPrepared) {
  fs::create_directories(folder_ / "run/logs");
  for (const char* const name : {"metrics.jsonl", "summary.json"}) {
    std::ofstream(folder_ / "precious") << "mine";
    fs::create_symlink(folder_ / "precious", folder_ / "run" / name);
  }
  Say("FAKE_WORKER_0", R"(touch "$FAKE_DIR/finished")");
  Say("FAKE_WORKER_1", "exit 0");

  ChildProcess psctl = StartRun();

  EXPECT_EQ(WaitForExit(psctl), 0) << Stderr();
  EXPECT_EQ(ReadFile(folder_ / "precious"), "mine");
  EXPECT_THAT(Stderr(), HasSubstr("metrics.jsonl: it is a symbolic link"));
  EXPECT_EQ(Summary()["test_accuracy"], 0.9);
  EXPECT_FALSE(fs::is_symlink(folder_ / "run/summary.json"));
}

TEST_F(PsctlRunTest, StartsNoProcessWhoseLogIsALink) {
  fs::create_directories(folder_ / "run/logs");
  std::ofstream(folder_ / "precious") << "mine";
  fs::create_symlink(folder_ / "precious", folder_ / "run/logs/server-0.log");

  ChildProcess psctl = StartRun();

  EXPECT_EQ(WaitForExit(psctl), 74) << Stderr();
  EXPECT_EQ(ReadFile(folder_ / "precious"), "mine");
  EXPECT_THAT(Stderr(), HasSubstr("logs/server-0.log: it is a symbolic link"));
}

TEST_F(PsctlRunTest, TellsHowToWatchItFromAnotherDirectory) {
  ASSERT_EQ(mkfifo((folder_ / "go").c_str(), 0600), 0);
  Say("FAKE_WORKER_0", R"(read -r < "$FAKE_DIR/go"; touch "$FAKE_DIR/finished")");
  Say("FAKE_WORKER_1", "exit 0");
  ChildProcess psctl = StartRun();
  const std::string before = "psctl: coordinator ";
  const std::string between =
      ": " + fs::absolute("deploy/psctl/psctl").string() + " status --watch --coordinator ";
  ASSERT_TRUE(WaitForText(between)) << Stderr();

  std::string address = ReadFile(folder_ / "run/logs/server-0.port");
  ASSERT_TRUE(address.ends_with('\n'));
  address.pop_back();

  EXPECT_TRUE(WaitForText(before + address + between + address + "\n")) << Stderr();
  std::ofstream(folder_ / "go") << "go\n";
  EXPECT_EQ(WaitForExit(psctl), 0) << Stderr();
  EXPECT_EQ(nlohmann::json::parse(Stdout())["test_accuracy"], 0.9);
}

TEST_F(PsctlRunTest, WarnsOnceOfServersThatAreNotOnThisMachine) {
  Say("FAKE_WORKER_0", R"(touch "$FAKE_DIR/finished")");
  Say("FAKE_WORKER_1", "exit 0");

  ChildProcess psctl = StartRun({"--set", "cluster.servers=localhost:7070,10.0.0.1:7070,n2:7070",
                                 "--set", "security.plaintext=accept_the_risk"});

  EXPECT_EQ(WaitForExit(psctl), 0) << Stderr();
  const std::string warning = "psctl: warning: psctl run starts all servers on this machine, ";
  EXPECT_THAT(Stderr(), HasSubstr(warning + "none at 10.0.0.1:7070; "));
  EXPECT_EQ(Stderr().find(warning), Stderr().rfind(warning));
}

TEST_F(PsctlRunTest, WarnsOfSettingsThatAreKnownNotToLearn) {
  Say("FAKE_WORKER_0", R"(touch "$FAKE_DIR/finished")");
  Say("FAKE_WORKER_1", "exit 0");
  const std::vector<std::string> settings = {"--set", "worker.algorithm=diloco", "--set",
                                             "consistency.policy=async"};
  const char* const warning = "warning: worker.outer: nesterov with learning_rate 0.7";
  std::vector<std::string> validate = {"validate", folder_ / "run.yaml", "-o", "json"};
  validate.insert(validate.end(), settings.begin(), settings.end());
  ChildProcess validating = Start(validate);

  EXPECT_EQ(WaitForExit(validating), 0);
  EXPECT_THAT(Stderr(), HasSubstr(warning));
  EXPECT_EQ(nlohmann::json::parse(Stdout())["warnings"].size(), 1u);

  ChildProcess running = StartRun(settings);

  EXPECT_EQ(WaitForExit(running), 0) << Stderr();
  EXPECT_THAT(Stderr(), HasSubstr(std::string("psctl: ") + warning));
}

TEST_F(PsctlRunTest, SaysThatInTheLogToo) {
  Say("FAKE_WORKER_0", R"(touch "$FAKE_DIR/finished")");
  Say("FAKE_WORKER_1", "exit 0");

  ChildProcess psctl = StartRun({"--log-format", "json", "--set", "cluster.servers=n1:7070",
                                 "--set", "security.plaintext=accept_the_risk"});

  EXPECT_EQ(WaitForExit(psctl), 0) << Stderr();
  std::vector<std::string> said;
  std::istringstream lines(Stderr());
  for (std::string line; std::getline(lines, line);) {
    const auto object = nlohmann::json::parse(line);
    said.push_back(object["level"].get<std::string>() + ": " +
                   object["message"].get<std::string>());
  }
  EXPECT_THAT(said, Contains(StartsWith("warning: psctl run starts all servers on this machine")));
  EXPECT_THAT(said, Contains(StartsWith("info: coordinator 127.0.0.1:")));
}

TEST_F(PsctlRunTest, StopsTheOthersAndTellsTheCauseLastWhenAWorkerFails) {
  Say("FAKE_WORKER_1", "echo 'T worker-1 error   no such data set' >&2; exit 78");

  ChildProcess psctl = StartRun();

  EXPECT_EQ(WaitForExit(psctl), 78);
  EXPECT_THAT(Stderr(),
              HasSubstr("psctl: error: worker 1 failed with exit code 78 (configuration)\n"));
  EXPECT_THAT(
      Stderr(),
      EndsWith("  | T worker-1 error   no such data set\n  log: " + LogPath("worker-1") + "\n"));
  const auto summary = nlohmann::json::parse(Stdout());
  EXPECT_EQ(summary["ended_by"], "failed");
  EXPECT_EQ(summary["error"], "worker 1 failed with exit code 78 (configuration)");
  EXPECT_EQ(summary["exit_code"], 78);
  EXPECT_EQ(summary["log_lines"].dump(), R"(["T worker-1 error   no such data set"])");
  EXPECT_EQ(ReadFile(folder_ / "run/summary.json"), Stdout());
  EXPECT_TRUE(NoneIsRunning());
}

TEST_F(PsctlRunTest, BlamesTheServerThatCrashedNotTheWorkerThatLostIt) {
  Say("FAKE_WORKER_0", "exit 69");
  Say("FAKE_SERVER_1", R"(until [[ -e "$FAKE_DIR/worker-0.pid" ]]; do :; done; kill -SEGV $$)");

  ChildProcess psctl = StartRun();

  EXPECT_EQ(WaitForExit(psctl), 1);
  EXPECT_THAT(Stderr(), HasSubstr("psctl: error: server 1 was killed by signal 11"));
  EXPECT_EQ(nlohmann::json::parse(Stdout())["ended_by"], "failed");
  EXPECT_THAT(Stderr(), Not(HasSubstr("worker 0 failed")));
  EXPECT_TRUE(NoneIsRunning());
}

TEST_F(PsctlRunTest, TellsWhyServer0DoesNotStart) {
  Say("FAKE_SERVER_0", "echo 'ps_server: error: no room' >&2; exit 74");

  ChildProcess psctl = StartRun();

  EXPECT_EQ(WaitForExit(psctl), 74);
  EXPECT_THAT(Stderr(), HasSubstr("psctl: error: server 0 failed with exit code 74 (input or "
                                  "output)\n  | ps_server: error: no room\n"));
}

TEST_F(PsctlRunTest, FailsWhenServer0DoesNotListenInTime) {
  Say("FAKE_SERVER_0", "exec tail -f /dev/null");

  ChildProcess psctl = StartRun({"--set", "cluster.start_timeout=1s"});

  EXPECT_EQ(WaitForExit(psctl), 69);
  EXPECT_THAT(Stderr(), EndsWith("psctl: error: server 0 did not listen within 1.00 s\n"));
  EXPECT_EQ(Summary()["error"], "server 0 did not listen within 1.00 s");
  EXPECT_TRUE(NoneIsRunning());
}

TEST_F(PsctlRunTest, LeavesNoProcessWhenItIsInterrupted) {
  Say("FAKE_WORKER_1", R"(trap '' TERM; tail -f /dev/null & echo $! >"$FAKE_DIR/child.pid"; wait)");
  for (const int signal : {SIGINT, SIGTERM}) {
    SCOPED_TRACE(testing::Message() << "signal " << signal);
    for (const auto& name : {"server-0", "server-1", "worker-0", "worker-1", "child"}) {
      fs::remove(folder_ / (std::string(name) + ".pid"));
    }
    fs::remove_all(folder_ / "run");
    fs::remove(folder_ / "stdout");  // The second run would append to it.
    ChildProcess psctl = StartRun({"--stop-timeout", "100ms"});
    ASSERT_TRUE(WaitUntil([&] { return Pids().size() == 5; }));

    kill(psctl.pid(), signal);

    EXPECT_EQ(WaitForExit(psctl), 128 + signal);
    EXPECT_THAT(Stderr(), HasSubstr("psctl: stopped by signal"));
    const auto summary = nlohmann::json::parse(Stdout());
    EXPECT_EQ(summary["exit_code"], 128 + signal);
    EXPECT_EQ(summary["ended_by"], "interrupted");
    EXPECT_EQ(ReadFile(folder_ / "run/summary.json"), Stdout());
    EXPECT_TRUE(WaitUntil([&] { return NoneIsRunning(); }));
  }
}

TEST_F(PsctlRunTest, SavesTheWeightsWhenItIsInterrupted) {
  std::ofstream(folder_ / "finished.saves") << "";
  for (const char* worker : {"FAKE_WORKER_0", "FAKE_WORKER_1"}) {
    Say(worker, R"(until [[ -e "$FAKE_DIR/finished" ]]; do read -rt 0.05 <> <(:); done; exit 0)");
  }
  ChildProcess psctl = StartRun();
  ASSERT_TRUE(WaitForText("training 25")) << Stderr();

  kill(psctl.pid(), SIGINT);

  EXPECT_EQ(WaitForExit(psctl), 130);
  EXPECT_THAT(Stderr(), HasSubstr("are measured and saved, for at most 30.0 s; a second signal"));
  EXPECT_THAT(Stderr(), EndsWith("psctl: stopped by signal 2 (Interrupt); the summary is in " +
                                 (folder_ / "run").string() + "\n"));
  const auto summary = Summary();
  EXPECT_EQ(summary["ended_by"], "interrupted");
  EXPECT_EQ(summary["weights_sha256"], "ab12");
  EXPECT_TRUE(NoneIsRunning());
}

TEST_F(PsctlRunTest, WarnsOfAWorkerThatDoesNothingAndNamesItWhenThereIsNoTimeLeft) {
  std::ofstream(folder_ / "finished.stalled") << "";
  std::ofstream(folder_ / "finished.hangs") << "";
  ChildProcess psctl = StartRun({"--save-timeout", "200ms"});
  const std::string warning =
      "psctl: warning: worker 1 is stalled: it lives, and has neither fetched nor pushed for 40.0 "
      "s; see what its program waits for, such as examples\n";
  ASSERT_TRUE(WaitForText(warning)) << Stderr();

  kill(psctl.pid(), SIGTERM);

  EXPECT_EQ(WaitForExit(psctl), 143);
  EXPECT_EQ(Stderr().find(warning), Stderr().rfind(warning)) << "said twice";
  EXPECT_THAT(Summary()["error"].get<std::string>(),
              EndsWith("within 200 ms; worker 1 has not pushed"));
}

TEST_F(PsctlRunTest, IgnoresTheSignalsOfBatchSystems) {
  ASSERT_EQ(mkfifo((folder_ / "go").c_str(), 0600), 0);
  Say("FAKE_WORKER_0", R"(read -r < "$FAKE_DIR/go"; touch "$FAKE_DIR/finished")");
  Say("FAKE_WORKER_1", "exit 0");
  ChildProcess psctl = StartRun();
  ASSERT_TRUE(WaitForText("training 25")) << Stderr();

  kill(psctl.pid(), SIGUSR2);
  std::ofstream(folder_ / "go") << "go\n";

  EXPECT_EQ(WaitForExit(psctl), 0) << Stderr();
  EXPECT_EQ(Summary()["ended_by"], "epochs");
}

TEST_F(PsctlRunTest, EndsWithoutTheWeightsThatTakeTooLong) {
  std::ofstream(folder_ / "finished.hangs") << "";
  ChildProcess psctl = StartRun({"--save-timeout", "200ms"});
  ASSERT_TRUE(WaitForText("training 25")) << Stderr();

  kill(psctl.pid(), SIGTERM);

  EXPECT_EQ(WaitForExit(psctl), 143);
  EXPECT_EQ(Summary()["error"],
            "stopped by signal 15 (Terminated) in epoch 2, after 100 updates; the weights were not "
            "saved: they were not measured and saved within 200 ms");
}

TEST_F(PsctlRunTest, DoesNotWaitAfterASecondSignalAndLeavesASummary) {
  std::ofstream(folder_ / "finished.hangs") << "";
  ChildProcess psctl = StartRun();
  ASSERT_TRUE(WaitForText("training 25")) << Stderr();
  kill(psctl.pid(), SIGINT);
  ASSERT_TRUE(WaitForText("training ends")) << Stderr();

  kill(psctl.pid(), SIGINT);

  EXPECT_EQ(WaitForExit(psctl), 130);
  const auto summary = Summary();
  EXPECT_EQ(summary["ended_by"], "interrupted");
  EXPECT_EQ(summary["updates"], 100);
  EXPECT_TRUE(WaitUntil([&] { return NoneIsRunning(); }));
}

TEST_F(PsctlRunTest, LeavesNoServerOrWorkerWhenItIsKilled) {
  ChildProcess psctl = StartRun();
  ASSERT_TRUE(WaitUntil([&] { return Pids().size() == 4; }));

  kill(psctl.pid(), SIGKILL);

  EXPECT_TRUE(WaitUntil([&] { return NoneIsRunning(); }));
}

TEST_F(PsctlRunTest, RefusesAWrongConfigurationBeforeAnythingStarts) {
  ChildProcess psctl = StartRun({"--set", "training.epochs=0", "--set", "seeed=1"});

  EXPECT_EQ(WaitForExit(psctl), 78);
  EXPECT_THAT(Stderr(), HasSubstr("training.epochs=0: error: "));
  EXPECT_THAT(Stderr(), HasSubstr("seeed=1: error: "));
  EXPECT_TRUE(nlohmann::json::parse(Stdout())["run_dir"].is_null());
  EXPECT_FALSE(fs::exists(folder_ / "run"));
  EXPECT_TRUE(Pids().empty());
}

TEST_F(PsctlRunTest, ReportsEveryWrongOverrideInOnePass) {
  ChildProcess psctl = Start({"validate", folder_ / "run.yaml", "--set", "seed", "--set", "=1",
                              "--set", "training.epochs=0"});

  EXPECT_EQ(WaitForExit(psctl), 2);
  for (const char* wrong : {"seed: error: must be key=value", "=1: error: must be key=value",
                            "training.epochs=0: error: "}) {
    EXPECT_THAT(Stderr(), HasSubstr(std::string("--set ") + wrong));
  }
}

TEST_F(PsctlRunTest, AnswersInJsonWhereAnOverrideIsNotUtf8) {
  ChildProcess psctl =
      Start({"validate", folder_ / "run.yaml", "--set", "name=\xFF", "-o", "json"});

  EXPECT_EQ(WaitForExit(psctl), 78) << Stderr();
  EXPECT_EQ(nlohmann::json::parse(Stdout())["valid"], false);
}

TEST_F(PsctlRunTest, TellsAFileThatCannotBeReadFromAWrongOne) {
  const std::vector<std::vector<std::string>> commands = {
      {"validate"}, {"run"}, {"config", "show"}};
  for (const std::vector<std::string>& command : commands) {
    for (const fs::path& path : {folder_ / "none.yaml", folder_}) {
      SCOPED_TRACE(command.front() + " " + path.string());
      std::vector<std::string> arguments = command;
      arguments.push_back(path);

      ChildProcess psctl = Start(arguments);

      EXPECT_EQ(WaitForExit(psctl), 74);
      EXPECT_THAT(Stderr(), HasSubstr(path.string() + ": error: cannot open the file"));
    }
  }
}

TEST_F(PsctlRunTest, SaysThatNoCoordinatorAnswers) {
  const SilentPort port;

  ChildProcess psctl = Start({"status", "--coordinator", port.address()});

  EXPECT_EQ(WaitForExit(psctl), 69);
  EXPECT_THAT(Stderr(), HasSubstr("psctl: error: no coordinator answers at " + port.address() +
                                  " within 2.00 s: "));
  EXPECT_THAT(Stderr(), Not(HasSubstr("Deadline")));
}

}  // namespace
}  // namespace slipstream
