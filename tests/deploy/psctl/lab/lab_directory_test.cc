#include "deploy/psctl/lab/lab_directory.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/deploy/psctl/lab/grid_support.h"

namespace slipstream {
namespace {

namespace fs = std::filesystem;

std::string ReadFile(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

class LabDirectoryTest : public testing::Test {
 protected:
  LabDirectoryTest()
      : path_(testing::TempDir() + "/" +
              testing::UnitTest::GetInstance()->current_test_info()->name()),
        grid_(Expand("product: {n: [1, 30]}\nworld: {server: {update_ms: 1}}\n")) {
    fs::remove_all(path_);
  }

  const Cell& cell() const { return grid_.cells.cells[0]; }

  const std::string path_;
  const Expanded grid_;
  const LabDirectory directory_ = LabDirectory(path_, "0000aaaa");
};

TEST_F(LabDirectoryTest, ACellGetsItsNameWhenItIsComplete) {
  ASSERT_TRUE(directory_.Lock().ok());
  EXPECT_EQ(directory_.StateOf(cell().id), CellState::kPending);

  ASSERT_TRUE(directory_.Begin(cell()).ok());
  EXPECT_EQ(directory_.StateOf(cell().id), CellState::kRunning);
  EXPECT_EQ(ReadFile(directory_.WorldPath(cell().id)), "server: {update_ms: 1}\n");
  const std::string unfinished = directory_.UnfinishedPath(cell().id);
  std::ofstream(unfinished + "/summary.json") << "{\"run_dir\": \"" << unfinished << "\"}";

  ASSERT_TRUE(directory_.Settle(cell(), /*has_failed=*/false, {1, 2, 3}).ok());

  EXPECT_EQ(directory_.StateOf(cell().id), CellState::kDone);
  EXPECT_EQ(ReadFile(directory_.CellPath(cell().id) + "/summary.json"),
            "{\"run_dir\": \"" + directory_.CellPath(cell().id) + "\"}");
  EXPECT_EQ(directory_.CostOf(cell().id)->cpu_seconds, 2);
  EXPECT_EQ(directory_.CostOf(cell().id)->peak_bytes, 3u);
}

TEST_F(LabDirectoryTest, AFailedCellMayBeRunAgain) {
  ASSERT_TRUE(directory_.Lock().ok());
  ASSERT_TRUE(directory_.Begin(cell()).ok());
  ASSERT_TRUE(directory_.Settle(cell(), /*has_failed=*/true, {}).ok());
  EXPECT_EQ(directory_.StateOf(cell().id), CellState::kFailed);

  ASSERT_TRUE(directory_.Begin(cell()).ok());
  ASSERT_TRUE(directory_.Settle(cell(), /*has_failed=*/true, {}).ok());
  ASSERT_TRUE(directory_.Begin(cell()).ok());
  ASSERT_TRUE(directory_.Settle(cell(), /*has_failed=*/false, {}).ok());

  EXPECT_EQ(directory_.StateOf(cell().id), CellState::kDone);
  EXPECT_FALSE(fs::exists(directory_.FailedPath(cell().id)));
}

TEST_F(LabDirectoryTest, ResultsOfAnotherBuildCountIfTheyAreWanted) {
  ASSERT_TRUE(directory_.Lock().ok());
  ASSERT_TRUE(directory_.Begin(cell()).ok());
  ASSERT_TRUE(directory_.Settle(cell(), /*has_failed=*/false, {}).ok());
  const LabDirectory other(path_, "0000bbbb");
  const LabDirectory any(path_, "0000bbbb", /*takes_any_build=*/true);

  EXPECT_EQ(other.StateOf(cell().id), CellState::kPending);
  EXPECT_EQ(other.UnusedText(grid_.cells.cells),
            "; 1 cell of another build left unused (--any-build takes them)");
  EXPECT_EQ(any.StateOf(cell().id), CellState::kDone);
  EXPECT_EQ(any.BuildOf(cell().id), "0000aaaa");
  EXPECT_EQ(any.UnusedText(grid_.cells.cells), "");

  // But they do not hide a failure of this build.
  ASSERT_TRUE(any.Begin(cell()).ok());
  ASSERT_TRUE(any.Settle(cell(), /*has_failed=*/true, {}).ok());
  EXPECT_EQ(any.StateOf(cell().id), CellState::kFailed);
}

TEST_F(LabDirectoryTest, OneHasTheLock) {
  EXPECT_FALSE(directory_.IsLocked());
  {
    const auto lock = directory_.Lock();
    ASSERT_TRUE(lock.ok());
    EXPECT_TRUE(directory_.IsLocked());
    EXPECT_EQ(directory_.Lock().status().code(), absl::StatusCode::kFailedPrecondition);
  }
  EXPECT_FALSE(directory_.IsLocked());
}

}  // namespace
}  // namespace slipstream
