#ifndef SLIPSTREAM_TESTS_DEPLOY_PSCTL_RUN_PSCTL_RUN_FIXTURE_H_
#define SLIPSTREAM_TESTS_DEPLOY_PSCTL_RUN_PSCTL_RUN_FIXTURE_H_

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "deploy/psctl/run/child_process.h"

namespace slipstream {

namespace fs = std::filesystem;

// The patience is generous: only a broken psctl takes that long.
inline constexpr absl::Duration kPatience = absl::Seconds(30);

inline std::string ReadFile(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

template <typename Condition>
bool WaitUntil(const Condition& condition) {
  const absl::Time deadline = absl::Now() + kPatience;
  while (!condition()) {
    if (absl::Now() > deadline) return false;
    poll(nullptr, 0, 10);
  }
  return true;
}

/// Returns whether the process runs. A process that has ended and is not reaped yet does not count.
inline bool IsRunning(const std::string& pid) {
  // getline() takes a process that ends while its file is read for one that has ended: ReadFile()
  // would throw.
  std::ifstream file("/proc/" + pid + "/stat");
  std::string stat;
  std::getline(file, stat);
  const size_t name_end = stat.rfind(')');
  return name_end != stat.npos && stat.at(name_end + 2) != 'Z';
}

/// Runs psctl with scripts in place of servers and workers; see fake_ps_server.sh.
class PsctlRunTest : public testing::Test {
 protected:
  PsctlRunTest()
      : folder_(fs::path(testing::TempDir()) /
                testing::UnitTest::GetInstance()->current_test_info()->name()) {
    fs::remove_all(folder_);
    fs::create_directories(folder_ / "bin");
    fs::copy_file("tests/deploy/psctl/run/fake_ps_server.sh", folder_ / "bin/ps_server");
    fs::copy_file("tests/deploy/psctl/run/fake_ps_worker.sh", folder_ / "bin/ps_worker");
    std::ofstream(folder_ / "run.yaml") << "name: demo\n"
                                           "model: {preset: mlp}\n"
                                           "data: {format: synthetic}\n"
                                           "consistency: {policy: async}\n"
                                           "cluster: {servers: [localhost:7070, localhost:7071], "
                                           "workers: 2}\n";
    environment_ = ChildEnvironment(environ);
    Say("FAKE_DIR", folder_);
    Say("FAKE_COORDINATOR", fs::absolute("tests/deploy/psctl/fake_coordinator"));
  }

  void Say(const std::string& name, const std::string& value) {
    environment_.push_back(name + "=" + value);
  }

  ChildProcess Start(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), fs::absolute("deploy/psctl/psctl"));
    auto psctl = ChildProcess::Start({.command = std::move(arguments),
                                      .environment = environment_,
                                      .stdout_path = stdout_,
                                      .stderr_path = stderr_});
    EXPECT_TRUE(psctl.ok()) << psctl.status();
    return *std::move(psctl);
  }

  ChildProcess StartRun(const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments = {
        "run",       folder_ / "run.yaml", "--run-dir", folder_ / "run",
        "--bin-dir", folder_ / "bin",      "-o",        "json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return Start(std::move(arguments));
  }

  /// Returns psctl's exit code, or −1 if a signal ends it or it does not end.
  int WaitForExit(ChildProcess& psctl) {
    if (!WaitUntil([&] { return psctl.Poll().has_value(); })) return -1;
    return psctl.Poll()->signal != 0 ? -1 : psctl.Poll()->exit_code;
  }

  std::string Stdout() const { return ReadFile(stdout_); }
  std::string Stderr() const { return ReadFile(stderr_); }
  nlohmann::json Summary() const {
    return nlohmann::json::parse(ReadFile(folder_ / "run/summary.json"));
  }

  bool WaitForText(const std::string& on_stderr) const {
    return WaitUntil([&] { return Stderr().find(on_stderr) != std::string::npos; });
  }

  std::string LogPath(const std::string& slug) const {
    return folder_ / "run/logs" / (slug + ".log");
  }

  /// Returns the ids of all processes that have written theirs to a file.
  std::vector<std::string> Pids() const {
    std::vector<std::string> pids;
    for (const auto& entry : fs::directory_iterator(folder_)) {
      if (entry.path().extension() != ".pid") continue;
      std::string pid = ReadFile(entry.path());
      if (pid.ends_with('\n')) pids.push_back(pid.substr(0, pid.size() - 1));
    }
    return pids;
  }

  bool NoneIsRunning() const {
    const std::vector<std::string> pids = Pids();
    return std::none_of(pids.begin(), pids.end(), IsRunning);
  }

  const fs::path folder_;
  fs::path stdout_ = folder_ / "stdout";
  fs::path stderr_ = folder_ / "stderr";
  std::vector<std::string> environment_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_DEPLOY_PSCTL_RUN_PSCTL_RUN_FIXTURE_H_
