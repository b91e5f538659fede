#include "common/process/logging.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <csignal>
#include <string>

#include "common/run/run_spec.h"

namespace slipstream {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;

TEST(LoggingTest, WritesTimeRoleAndLevelToStderr) {
  testing::internal::CaptureStderr();
  StartLogging("worker-3", LogSpec::Level::kInfo);

  spdlog::info("joined worker={}", 3);

  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              MatchesRegex("[-0-9]+T[:.0-9]+Z worker-3 info    joined worker=3\n"));
}

TEST(LoggingTest, LeavesOutWhatIsBelowTheLevel) {
  testing::internal::CaptureStderr();
  StartLogging("server-0", LogSpec::Level::kWarning);

  spdlog::info("quiet");
  spdlog::warn("loud");

  const std::string output = testing::internal::GetCapturedStderr();
  EXPECT_THAT(output, Not(HasSubstr("quiet")));
  EXPECT_THAT(output, HasSubstr("server-0 warning loud"));
}

TEST(LoggingDeathTest, LosesNothingWhenTheProcessDies) {
  EXPECT_EXIT(
      {
        StartLogging("server-1", LogSpec::Level::kDebug);
        spdlog::debug("last words");
        raise(SIGKILL);
      },
      testing::KilledBySignal(SIGKILL), "server-1 debug   last words");
}

}  // namespace
}  // namespace slipstream
