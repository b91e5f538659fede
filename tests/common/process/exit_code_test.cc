#include "common/process/exit_code.h"

#include <gtest/gtest.h>

#include "absl/status/status.h"

namespace slipstream {
namespace {

struct Row {
  absl::StatusCode status;
  int exit_code;
};

class ExitCodeTest : public testing::TestWithParam<Row> {};

TEST_P(ExitCodeTest, FollowsTheTable) {
  const absl::Status status(GetParam().status, "why");

  EXPECT_EQ(static_cast<int>(ExitCodeFor(status)), GetParam().exit_code);
}

INSTANTIATE_TEST_SUITE_P(
    All, ExitCodeTest,
    testing::Values(
        Row{absl::StatusCode::kOk, 0}, Row{absl::StatusCode::kUnavailable, 69},
        Row{absl::StatusCode::kDeadlineExceeded, 69}, Row{absl::StatusCode::kNotFound, 74},
        Row{absl::StatusCode::kDataLoss, 74}, Row{absl::StatusCode::kResourceExhausted, 75},
        Row{absl::StatusCode::kAborted, 75}, Row{absl::StatusCode::kFailedPrecondition, 75},
        Row{absl::StatusCode::kInvalidArgument, 78}, Row{absl::StatusCode::kInternal, 1},
        Row{absl::StatusCode::kUnknown, 1}, Row{absl::StatusCode::kUnimplemented, 1}));

}  // namespace
}  // namespace slipstream
