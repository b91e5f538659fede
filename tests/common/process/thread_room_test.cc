#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <system_error>
#include <thread>

#include "common/process/guarded_main.h"
#include "common/process/process_limits.h"

namespace slipstream {
namespace {

using testing::ExitedWithCode;
using testing::HasSubstr;

/// A directory with the system files of a machine.
class ThreadRoomTest : public testing::Test {
 protected:
  ~ThreadRoomTest() override { std::filesystem::remove_all(root_); }

  void Write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }

  void Group(const std::string& path, const std::string& limit, const std::string& used) {
    Write(path + "/pids.max", limit + "\n");
    Write(path + "/pids.current", used + "\n");
  }

  void MayPassTheUsersLimit() { Write("/proc/self/status", "CapEff:\t000001ffffffffff\n"); }

  const std::string root_ = testing::TempDir() + "/thread_room_test";
};

TEST_F(ThreadRoomTest, NothingBoundsAProcessWithoutGroupsThatMayPassTheUsersLimit) {
  MayPassTheUsersLimit();

  const ThreadRoom room = ReadThreadRoom(root_);

  EXPECT_EQ(room.left, std::numeric_limits<uint64_t>::max());
  EXPECT_TRUE(CheckThreadRoom(kThreadsNeeded, room).ok());
}

TEST_F(ThreadRoomTest, TheTightestOfTheGroupsAroundCounts) {
  MayPassTheUsersLimit();
  Write("/proc/self/cgroup", "0::/run.slice/server.scope\n");
  Group("/sys/fs/cgroup/run.slice/server.scope", "max", "30");
  Group("/sys/fs/cgroup/run.slice", "100", "70");

  const ThreadRoom room = ReadThreadRoom(root_);

  EXPECT_EQ(room.limit, 100u);
  EXPECT_EQ(room.left, 30u);
}

TEST_F(ThreadRoomTest, ReadsVersionOne) {
  MayPassTheUsersLimit();
  Write("/proc/self/cgroup", "4:pids:/docker/5\n3:memory:/docker/5\n");
  Group("/sys/fs/cgroup/pids/docker/5", "40", "50");

  EXPECT_EQ(ReadThreadRoom(root_).left, 0u);
}

TEST_F(ThreadRoomTest, TheErrorNamesTheLimitAndBothFigures) {
  const absl::Status none = CheckThreadRoom(64, {.limit = 100, .left = 30, .name = "ulimit -u"});

  EXPECT_EQ(ExitCodeFor(none), ExitCode::kTemporary);
  EXPECT_THAT(std::string(none.message()),
              HasSubstr("(ulimit -u) is 100, which leaves 30; needed: about 64"));
}

[[noreturn]] void FailToStartAThread() {
  throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
}

TEST(ThreadRoomDeathTest, AProgramThatCannotStartAThreadSaysSo) {
  const auto fail = [] {
    std::_Exit(GuardedMain("program", []() -> int { FailToStartAThread(); }));
  };
  EXPECT_EXIT(fail(), ExitedWithCode(75), "program: error: cannot start a thread: ");
}

TEST(ThreadRoomDeathTest, SoDoesOneThatCannotWhereNobodyCatches) {
  const auto fail = [] {
    (void)GuardedMain("program", []() -> int {
      std::thread([] { FailToStartAThread(); }).join();
      return 0;
    });
  };
  EXPECT_EXIT(fail(), ExitedWithCode(75), "error: cannot start a thread: ");
}

}  // namespace
}  // namespace slipstream
