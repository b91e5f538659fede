#include "common/process/version.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace slipstream {
namespace {

TEST(VersionTest, TheLineNamesWhatAProgramUnderstands) {
  EXPECT_EQ(VersionLine("ps_server"), fmt::format("ps_server {} (protocol {}, durable format {})",
                                                  kVersion, kProtocol, kDurableFormat));
}

TEST(VersionTest, APeerOfANewerReleaseIsToldWhatToDo) {
  EXPECT_TRUE(CheckProtocol(0, "the worker").ok()) << "it has not said what it speaks";
  for (uint32_t protocol = kOldestProtocol; protocol <= kProtocol; ++protocol) {
    EXPECT_TRUE(CheckProtocol(protocol, "the worker").ok());
  }
  const absl::Status newer = CheckProtocol(kProtocol + 1, "the worker");
  EXPECT_TRUE(absl::IsFailedPrecondition(newer));
  EXPECT_THAT(std::string(newer.message()),
              testing::MatchesRegex(
                  fmt::format("this server, of release {}, speaks protocols? .*{}, and the worker "
                              "speaks {}: upgrade the servers first, .*",
                              kVersion, kProtocol, kProtocol + 1)));
  for (uint32_t protocol = 1; protocol < kOldestProtocol; ++protocol) {
    EXPECT_THAT(std::string(CheckProtocol(protocol, "the worker").message()),
                testing::EndsWith(fmt::format("speaks {}: upgrade the worker", protocol)));
  }
}

}  // namespace
}  // namespace slipstream
