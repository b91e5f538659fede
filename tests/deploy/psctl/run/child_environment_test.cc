#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "deploy/psctl/run/child_process.h"

namespace slipstream {
namespace {

using testing::ElementsAre;

TEST(ChildEnvironmentTest, HidesWhatTheResolvedConfigurationHoldsAlready) {
  const char* const block[] = {"HOME=/root", "PS_SEED=5", "PS_SERVER_BINARY=x", "TERM=", nullptr};

  EXPECT_THAT(ChildEnvironment(block), ElementsAre("HOME=/root", "TERM="));
}

}  // namespace
}  // namespace slipstream
