#include "common/process/exit_code.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "absl/status/status.h"

namespace slipstream {
namespace {

struct Row {
  absl::StatusCode status;
  int exit_code;
};

class ExitCodeTableTest : public testing::TestWithParam<Row> {};

TEST_P(ExitCodeTableTest, FollowsTheTable) {
  const absl::Status status(GetParam().status, "why");

  EXPECT_EQ(static_cast<int>(ExitCodeFor(status)), GetParam().exit_code);
}

INSTANTIATE_TEST_SUITE_P(
    All, ExitCodeTableTest,
    testing::Values(
        Row{absl::StatusCode::kOk, 0}, Row{absl::StatusCode::kUnavailable, 69},
        Row{absl::StatusCode::kDeadlineExceeded, 69}, Row{absl::StatusCode::kNotFound, 74},
        Row{absl::StatusCode::kDataLoss, 74}, Row{absl::StatusCode::kResourceExhausted, 75},
        Row{absl::StatusCode::kAborted, 75}, Row{absl::StatusCode::kFailedPrecondition, 75},
        Row{absl::StatusCode::kInvalidArgument, 78}, Row{absl::StatusCode::kInternal, 1},
        Row{absl::StatusCode::kUnknown, 1}, Row{absl::StatusCode::kUnimplemented, 1}));

TEST(ExitCodeTest, TellsHowARunEnded) {
  const absl::Status failed = RunFailedError("why");
  const absl::Status diverged = DivergedError("why");

  EXPECT_EQ(static_cast<int>(ExitCodeFor(failed)), 80);
  EXPECT_EQ(static_cast<int>(ExitCodeFor(diverged)), 81);
  EXPECT_EQ(failed.message(), "why");
  EXPECT_EQ(diverged.message(), "why");
}

TEST(ConfigFailureCodeTest, TellsAFileThatCannotBeReadFromAWrongOne) {
  const std::string folder = testing::TempDir();
  const std::string path = folder + "/wrong.yaml";
  std::ofstream(path) << "nothing: right\n";

  EXPECT_EQ(ConfigFailureCode(folder + "/none.yaml", {}), ExitCode::kIo);
  EXPECT_EQ(ConfigFailureCode(folder, {}), ExitCode::kIo);
  EXPECT_EQ(ConfigFailureCode(path, {}), ExitCode::kConfiguration);
  EXPECT_EQ(ConfigFailureCode(path, {"seed=x"}), ExitCode::kConfiguration);
}

TEST(ConfigFailureCodeTest, AnOverrideThatIsNoPairIsWrongUsage) {
  const std::string path = testing::TempDir() + "/right.yaml";
  std::ofstream(path) << "model: {preset: mlp}\n";

  EXPECT_EQ(ConfigFailureCode(path, {"seed=3", "seed"}), ExitCode::kUsage);
  EXPECT_EQ(ConfigFailureCode(path, {"=3"}), ExitCode::kUsage);
}

}  // namespace
}  // namespace slipstream
