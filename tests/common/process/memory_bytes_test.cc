#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <string>

#include "common/process/process_limits.h"

namespace slipstream {
namespace {

constexpr uint64_t kUnlimited = std::numeric_limits<uint64_t>::max();

/// A directory with the system files of a machine that has 1000 KiB of memory, 800 of them
/// available.
class MemoryBytesTest : public testing::Test {
 protected:
  MemoryBytesTest() {
    Write(
        "/proc/meminfo",
        "MemTotal:           1000 kB\nMemFree:             100 kB\nMemAvailable:        800 kB\n");
  }
  ~MemoryBytesTest() override { std::filesystem::remove_all(root_); }

  void Write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }

  void Group2(const std::string& path, const std::string& limit, const std::string& used,
              const std::string& stat = "") {
    Write("/sys/fs/cgroup" + path + "/memory.max", limit + "\n");
    Write("/sys/fs/cgroup" + path + "/memory.current", used + "\n");
    Write("/sys/fs/cgroup" + path + "/memory.stat", stat);
  }

  void Group1(const std::string& path, const std::string& limit, const std::string& used,
              const std::string& stat = "") {
    Write("/sys/fs/cgroup/memory" + path + "/memory.limit_in_bytes", limit + "\n");
    Write("/sys/fs/cgroup/memory" + path + "/memory.usage_in_bytes", used + "\n");
    Write("/sys/fs/cgroup/memory" + path + "/memory.stat", stat);
  }

  /// Returns "<limit> <available>".
  std::string Read() const {
    const MemoryBytes bytes = ReadMemoryBytes(root_);
    return std::to_string(bytes.limit) + " " + std::to_string(bytes.available);
  }

  const std::string root_ = testing::TempDir() + "/memory_bytes_test";
};

TEST_F(MemoryBytesTest, IsTheMachinesWithoutGroups) { EXPECT_EQ(Read(), "1024000 819200"); }

TEST_F(MemoryBytesTest, IsUnlimitedWhereTheSystemDoesNotSay) {
  std::filesystem::remove_all(root_);

  const MemoryBytes bytes = ReadMemoryBytes(root_);

  EXPECT_EQ(bytes.limit, kUnlimited);
  EXPECT_EQ(bytes.available, kUnlimited);
}

TEST_F(MemoryBytesTest, AGroupWithoutALimitChangesNothing) {
  Write("/proc/self/cgroup", "0::/\n");
  Group2("", "max", "500000");

  EXPECT_EQ(Read(), "1024000 819200");
}

TEST_F(MemoryBytesTest, FilesThatAreOnlyKeptCountAsFree) {
  Write("/proc/self/cgroup", "0::/\n");
  Group2("", "600000", "590000",
         "anon 100000\nfile 480000\ninactive_file 400000\nactive_file 80000\n");

  EXPECT_EQ(Read(), "600000 490000");
}

TEST_F(MemoryBytesTest, TheTightestOfTheGroupsAroundCounts) {
  Write("/proc/self/cgroup", "0::/run.slice/server.scope\n");
  Group2("/run.slice/server.scope", "max", "10000");
  Group2("/run.slice", "500000", "450000", "inactive_file 50000\n");
  Group2("/other.slice", "1", "1");

  EXPECT_EQ(Read(), "500000 100000");
  Group2("/run.slice/server.scope", "90000", "10000");
  EXPECT_EQ(Read(), "90000 80000");
}

TEST_F(MemoryBytesTest, AContainerThatDoesNotSeeItsGroupsNameHasItsLimitAtTheTop) {
  Write("/proc/self/cgroup", "0::/machine.slice/container-5\n");
  Group2("", "300000", "100000");

  EXPECT_EQ(Read(), "300000 200000");
}

TEST_F(MemoryBytesTest, ReadsVersionOne) {
  Write("/proc/self/cgroup", "5:cpu,cpuacct:/tight\n4:hugetlb,memory:/docker/5\n0::/\n");
  Group1("", "9223372036854771712", "700000");
  Group1("/docker/5", "400000", "390000",
         "inactive_file 1\nactive_file 1\ntotal_inactive_file 200000\ntotal_active_file 100000\n");
  Group1("/tight", "1", "1");

  EXPECT_EQ(Read(), "400000 310000");
}

TEST_F(MemoryBytesTest, AFullGroupHasNothingLeft) {
  Write("/proc/self/cgroup", "0::/\n");
  Group2("", "300000", "300500", "inactive_file 0\nactive_file 0\n");

  EXPECT_EQ(Read(), "300000 0");
}

TEST(MemoryBytesHereTest, SomethingIsAvailable) {
  const MemoryBytes here = ReadMemoryBytes();

  EXPECT_GT(here.available, uint64_t{1} << 20);
  EXPECT_GE(here.limit, here.available);
}

}  // namespace
}  // namespace slipstream
