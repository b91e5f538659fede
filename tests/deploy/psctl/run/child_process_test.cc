#include "deploy/psctl/run/child_process.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>

#include <cerrno>
#include <csignal>
#include <fstream>
#include <iterator>
#include <string>

namespace slipstream {
namespace {

std::string ReadFile(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// Returns the file to which the test's child writes its output.
std::string LogPath() {
  return testing::TempDir() + "/" + testing::UnitTest::GetInstance()->current_test_info()->name() +
         ".log";
}

ChildProcess::Options Shell(const std::string& script) {
  return {.command = {"/bin/sh", "-c", script},
          .environment = {"PATH=/usr/bin:/bin", "COLOR=blue"},
          .stdout_path = LogPath(),
          .stderr_path = LogPath()};
}

ChildProcess::End WaitForEnd(ChildProcess& child) {
  pollfd waiting = {.fd = child.fd(), .events = POLLIN, .revents = 0};
  while (poll(&waiting, 1, -1) < 0) {
  }
  return child.Poll().value();
}

/// Waits until the child has written output, which shows that its first lines have run.
void WaitForOutput() {
  while (ReadFile(LogPath()).empty()) poll(nullptr, 0, 5);
}

TEST(ChildProcessTest, TellsHowAProgramEnded) {
  auto child = ChildProcess::Start(Shell("echo out; echo $COLOR >&2; exit 78"));
  ASSERT_TRUE(child.ok());

  const ChildProcess::End end = WaitForEnd(*child);

  EXPECT_EQ(end.exit_code, 78);
  EXPECT_EQ(end.signal, 0);
  EXPECT_EQ(ReadFile(LogPath()), "out\nblue\n");
  EXPECT_EQ(child->Poll()->exit_code, 78);
}

TEST(ChildProcessTest, TellsWhichSignalEndedIt) {
  auto child = ChildProcess::Start(Shell("echo ready; exec tail -f /dev/null"));
  ASSERT_TRUE(child.ok());
  WaitForOutput();
  EXPECT_FALSE(child->Poll().has_value());

  child->Signal(SIGTERM);

  EXPECT_EQ(WaitForEnd(*child).signal, SIGTERM);
}

TEST(ChildProcessTest, RunsOnTheGivenCoresAlone) {
  ChildProcess::Options options = Shell("taskset -pc $$ | sed 's/.*: //'");
  cpu_set_t own;
  ASSERT_EQ(sched_getaffinity(0, sizeof own, &own), 0);
  int core = 0;
  while (!CPU_ISSET(static_cast<size_t>(core), &own)) ++core;
  options.cores = {core};
  auto child = ChildProcess::Start(options);
  ASSERT_TRUE(child.ok());

  const ChildProcess::End end = WaitForEnd(*child);

  EXPECT_EQ(ReadFile(LogPath()), std::to_string(core) + "\n");
  EXPECT_GT(end.peak_bytes, 0u);
}

TEST(ChildProcessTest, CountsTheTimeOfDescendants) {
  auto child =
      ChildProcess::Start(Shell("(i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done) & wait; true"));
  ASSERT_TRUE(child.ok());

  EXPECT_GT(WaitForEnd(*child).cpu_seconds, 0);
}

TEST(ChildProcessTest, TakesWhatAProgramLeavesBehindWithIt) {
  auto child = ChildProcess::Start(Shell("tail -f /dev/null & echo $!"));
  ASSERT_TRUE(child.ok());

  EXPECT_EQ(WaitForEnd(*child).exit_code, 0);

  // The group's last member disappears once the kernel has carried out the kill.
  while (kill(-child->pid(), 0) == 0) poll(nullptr, 0, 5);
  EXPECT_EQ(errno, ESRCH);
}

TEST(ChildProcessTest, DoesNotOutliveItsOwner) {
  pid_t pid = 0;
  {
    auto child = ChildProcess::Start(Shell("trap '' TERM; echo ready; tail -f /dev/null"));
    ASSERT_TRUE(child.ok());
    WaitForOutput();
    pid = child->pid();
  }

  EXPECT_EQ(kill(pid, 0), -1);
  EXPECT_EQ(errno, ESRCH);
}

TEST(ChildProcessTest, SaysWhyAProgramCannotBeStarted) {
  ChildProcess::Options options = Shell("");
  options.command = {"/no/such/program"};

  const auto child = ChildProcess::Start(options);

  ASSERT_FALSE(child.ok());
  EXPECT_EQ(std::string(child.status().message()),
            "cannot start /no/such/program: No such file or directory");
}

TEST(ChildProcessTest, SaysWhichLogCannotBeOpened) {
  ChildProcess::Options options = Shell("");
  options.stderr_path = "/no/such/folder/log";

  const auto child = ChildProcess::Start(options);

  ASSERT_FALSE(child.ok());
  EXPECT_EQ(std::string(child.status().message()),
            "cannot open /no/such/folder/log: No such file or directory");
}

}  // namespace
}  // namespace slipstream
