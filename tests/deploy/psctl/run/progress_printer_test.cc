#include "deploy/psctl/run/progress_printer.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/deploy/psctl/example_status.h"

namespace slipstream {
namespace {

TEST(ProgressPrinterTest, ShowsEveryEvaluationOnceWhereTheServerKeepsOnlyTheLast) {
  v1::RunStatus status = ExampleStatus();
  std::string expected;
  testing::internal::CaptureStderr();
  {
    ProgressPrinter printer(LogSpec::Format::kText);
    printer.Show(status, absl::UnixEpoch());
    testing::internal::GetCapturedStderr();

    testing::internal::CaptureStderr();
    for (uint32_t epoch = 1; epoch <= 4; ++epoch) {
      *status.add_evaluations() = ExampleEvaluation(epoch, 0.5, false);
      status.mutable_evaluations()->rbegin()->set_epochs_measured(epoch);
      if (epoch > 2) status.mutable_evaluations()->DeleteSubrange(0, 1);
      for (int times = 0; times < 2; ++times) printer.Show(status, absl::UnixEpoch());
      expected += "epoch " + std::to_string(epoch) +
                  ": test accuracy 50.00%, test loss 0.2500 at version 1406 (4000 examples in "
                  "500 ms)\n";
    }
  }

  EXPECT_EQ(testing::internal::GetCapturedStderr(), expected);
}

}  // namespace
}  // namespace slipstream
