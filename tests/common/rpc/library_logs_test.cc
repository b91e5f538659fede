#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <cstdlib>

#include "common/rpc/library_settings.h"
#include "proto/coordinator.pb.h"
#include "tests/support/captured_log.h"

namespace slipstream {
namespace {

TEST(LibraryLogsTest, NoPeerWritesLinesByTextsThatAreNotUtf8) {
  TakeLibraryLogs();
  CapturedLog log;
  v1::RegisterRequest request;
  testing::internal::CaptureStderr();

  EXPECT_FALSE(request.ParseFromString("\x12\x01\xff"));

  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(log.Count("UTF-8"), 0);
  spdlog::default_logger()->set_level(spdlog::level::debug);
  EXPECT_FALSE(request.ParseFromString("\x12\x01\xff"));
  EXPECT_EQ(log.Count("UTF-8"), 1);
}

TEST(LibrarySettingsTest, NamesAreLookedUpAsTheSystemDoesUnlessAUserHasChosen) {
  unsetenv("GRPC_DNS_RESOLVER");
  UseSystemResolver();
  EXPECT_STREQ(getenv("GRPC_DNS_RESOLVER"), "native");

  setenv("GRPC_DNS_RESOLVER", "ares", 1);
  UseSystemResolver();
  EXPECT_STREQ(getenv("GRPC_DNS_RESOLVER"), "ares");
}

}  // namespace
}  // namespace slipstream
