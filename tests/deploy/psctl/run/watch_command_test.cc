#include "deploy/psctl/run/watch_command.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace slipstream {
namespace {

namespace fs = std::filesystem;

/// Makes two directories, each with a psctl.
class WatchCommandTest : public testing::Test {
 protected:
  WatchCommandTest()
      : folder_(fs::path(testing::TempDir()) /
                testing::UnitTest::GetInstance()->current_test_info()->name()) {
    fs::remove_all(folder_);
    for (const char* const name : {"one", "two"}) {
      fs::create_directories(folder_ / name);
      std::ofstream(folder_ / name / "psctl") << name;
    }
  }

  const fs::path folder_;
};

TEST_F(WatchCommandTest, IsANameWhereTheShellFindsThisProgram) {
  const std::string search_path = (folder_ / "none").string() + ":" + (folder_ / "one").string();

  EXPECT_EQ(ProgramAnywhere("psctl", search_path), "psctl");
  EXPECT_EQ(ProgramAnywhere((folder_ / "one/psctl").string(), search_path), "psctl");
}

TEST_F(WatchCommandTest, IsAnAbsolutePathWhereTheShellFindsAnotherOrNone) {
  const std::string two = (folder_ / "two/psctl").string();

  EXPECT_EQ(ProgramAnywhere(two, (folder_ / "one").string()), two);
  EXPECT_EQ(ProgramAnywhere("bin/../bazel-bin/psctl", ""),
            (fs::current_path() / "bazel-bin/psctl").string());
}

TEST_F(WatchCommandTest, TrustsNoRelativeDirectoryOfThePath) {
  EXPECT_TRUE(ProgramAnywhere("psctl", "one:.").starts_with("/"));
}

TEST_F(WatchCommandTest, NamesFilesByAbsolutePaths) {
  SecuritySpec security;
  security.mtls.ca = "certs/ca.crt";
  security.token = "env:TOKEN";
  const std::string here = fs::current_path().string();

  EXPECT_EQ(WatchCommand("/opt/bin of mine/psctl", "127.0.0.1:7070", security),
            "'/opt/bin of mine/psctl' status --watch --coordinator 127.0.0.1:7070 --ca " + here +
                "/certs/ca.crt --token env:TOKEN");
}

TEST(ShellWordTest, QuotesWhatAShellWouldTakeApart) {
  EXPECT_EQ(ShellWord("/a-b/c_d.e:1"), "/a-b/c_d.e:1");
  EXPECT_EQ(ShellWord("a b"), "'a b'");
  EXPECT_EQ(ShellWord("it's"), "'it'\\''s'");
  EXPECT_EQ(ShellWord("$x"), "'$x'");
  EXPECT_EQ(ShellWord(""), "''");
}

}  // namespace
}  // namespace slipstream
