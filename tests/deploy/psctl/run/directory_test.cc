#include "deploy/psctl/run/directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "absl/time/civil_time.h"

namespace slipstream {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

namespace fs = std::filesystem;

/// Runs in an empty current directory.
class RunDirectoryTest : public testing::Test {
 protected:
  RunDirectoryTest() : previous_(fs::current_path()) {
    fs::path fresh = fs::path(testing::TempDir()) /
                     testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(fresh);
    fs::create_directories(fresh);
    fs::current_path(fresh);
  }
  ~RunDirectoryTest() override { fs::current_path(previous_); }

  const absl::Time now_ =
      absl::FromCivil(absl::CivilSecond(2026, 3, 1, 12, 30, 5), absl::UTCTimeZone());

 private:
  const fs::path previous_;
};

TEST_F(RunDirectoryTest, IsNamedByRunAndTimeAndNeverShared) {
  const auto first = RunDirectory::Create("", "demo", now_);
  const auto second = RunDirectory::Create("", "demo", now_);

  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(first->path(), "runs/demo-20260301T123005Z");
  EXPECT_EQ(second->path(), "runs/demo-20260301T123005Z-2");
  EXPECT_TRUE(fs::is_directory("runs/demo-20260301T123005Z/logs"));
  EXPECT_EQ(first->LogPath({Role::kWorker, 3}), "runs/demo-20260301T123005Z/logs/worker-3.log");
}

TEST_F(RunDirectoryTest, StaysBelowRunsWhateverTheName) {
  const auto directory = RunDirectory::Create("", "../a b/ü", now_);

  ASSERT_TRUE(directory.ok());
  EXPECT_EQ(directory->path(), "runs/_._a_b___-20260301T123005Z");
}

TEST_F(RunDirectoryTest, RefusesAChosenOneThatKeepsARun) {
  const auto first = RunDirectory::Create("mine/here", "demo", now_);
  ASSERT_TRUE(first.ok());
  std::ofstream(first->ConfigPath()) << "version: 1\n";

  EXPECT_EQ(first->path(), "mine/here");
  EXPECT_FALSE(RunDirectory::Create("mine/here", "demo", now_).ok());
}

TEST_F(RunDirectoryTest, BelongsToTheFirstOfThoseThatStartAtOnce) {
  const auto first = RunDirectory::Create("mine", "demo", now_);
  ASSERT_TRUE(first.ok()) << first.status();

  EXPECT_EQ(std::string(RunDirectory::Create("mine", "demo", now_).status().message()),
            "mine already keeps a run; name another --run-dir");
  first->GiveUp();
  EXPECT_TRUE(RunDirectory::Create("mine", "demo", now_).ok()) << "nothing ran there";
}

TEST_F(RunDirectoryTest, SaysWhyItCannotBeMade) {
  std::ofstream("file") << "x";

  const auto directory = RunDirectory::Create("file/below", "demo", now_);

  ASSERT_FALSE(directory.ok());
  EXPECT_EQ(std::string(directory.status().message()), "cannot create file/below: Not a directory");
}

TEST_F(RunDirectoryTest, IsNoneThatAnotherUserMayChange) {
  fs::create_directory("open");
  fs::permissions("open", fs::perms::all);

  const auto directory = RunDirectory::Create("open", "demo", now_);

  EXPECT_EQ(directory.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(directory.status().message()),
              HasSubstr("the run directory open may be written by every user"));
  EXPECT_TRUE(fs::is_empty("open"));
  fs::permissions("open", fs::perms::all | fs::perms::sticky_bit);
  EXPECT_TRUE(RunDirectory::Create("open", "demo", now_).ok()) << "nobody can replace our files";
}

TEST_F(RunDirectoryTest, IsNoneThatAnotherUserHasPrepared) {
  fs::create_directories("tmp/theirs");
  fs::permissions("tmp", fs::perms::all | fs::perms::sticky_bit);
  if (chown("tmp/theirs", 12345, 12345) != 0) GTEST_SKIP() << "only root may give one away";

  const auto directory = RunDirectory::Create("tmp/theirs", "demo", now_);

  EXPECT_EQ(directory.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(directory.status().message()),
              HasSubstr("the run directory tmp/theirs belongs to another user"));
  fs::permissions("tmp", fs::perms::owner_all);
  EXPECT_TRUE(RunDirectory::Create("tmp/theirs", "demo", now_).ok()) << "nobody can prepare it";
}

TEST_F(RunDirectoryTest, ItsFoldersAreNoLinks) {
  for (const char* const folder : {"logs", "checkpoints"}) {
    fs::remove_all("mine");
    fs::create_directories("mine");
    fs::create_directories("elsewhere");
    fs::create_directory_symlink("../elsewhere", std::string("mine/") + folder);

    const auto directory = RunDirectory::Create("mine", "demo", now_);

    EXPECT_THAT(std::string(directory.status().message()),
                HasSubstr(std::string("mine/") + folder + " is a symbolic link"));
    EXPECT_TRUE(fs::is_empty("elsewhere"));
  }
}

TEST_F(RunDirectoryTest, ListsItsModelsTheFinalOneLast) {
  const auto directory = RunDirectory::Create("mine", "demo", now_);
  ASSERT_TRUE(directory.ok()) << directory.status();
  for (const auto* name : {"model.safetensors", "model-epoch-0002.safetensors",
                           "model-epoch-0001.safetensors", "model.safetensors.unfinished"}) {
    std::ofstream(std::string("mine/") + name) << "x";
  }

  EXPECT_THAT(directory->Models(),
              ElementsAre("mine/model-epoch-0001.safetensors", "mine/model-epoch-0002.safetensors",
                          "mine/model.safetensors"));
}

TEST_F(RunDirectoryTest, FindsTheLastErrorsOfALog) {
  std::ofstream("errors.log")
      << "T worker-0 info    a\nT worker-0 error   b\nT worker-0 info    c\n"
         "T worker-0 error   d\nps_worker: error: e\n";
  std::ofstream("plain.log") << "1\n2\n3\n";

  EXPECT_THAT(LastErrorLines("errors.log", 2),
              ElementsAre("T worker-0 error   d", "ps_worker: error: e"));
  EXPECT_THAT(LastErrorLines("plain.log", 2), ElementsAre("2", "3"));
  EXPECT_THAT(LastErrorLines("plain.log", 2, IfNoError::kQuoteNone), IsEmpty());
  EXPECT_THAT(LastErrorLines("none.log", 2), IsEmpty());
}

TEST_F(RunDirectoryTest, ReadsOnlyTheEndOfALongLog) {
  {
    std::ofstream file("long.log");
    file << "error: long ago\n";
    for (int i = 0; i < 10'000; ++i) file << "line " << i << "\n";
  }

  EXPECT_THAT(LastErrorLines("long.log", 1), ElementsAre("line 9999"));
}

}  // namespace
}  // namespace slipstream
