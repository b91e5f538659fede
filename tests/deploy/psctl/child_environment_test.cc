#include "deploy/psctl/child_environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace slipstream {
namespace {

using testing::ElementsAre;
using testing::Pair;

TEST(ChildEnvironmentTest, HidesWhatTheResolvedConfigurationHoldsAlready) {
  const char* const block[] = {"HOME=/root", "PS_SEED=5", "PS_SERVER_BINARY=x", "TERM=", nullptr};

  EXPECT_THAT(ChildEnvironment(block), ElementsAre("HOME=/root", "TERM="));
}

TEST(ChildEnvironmentTest, TakesTheFirstOfAName) {
  const char* const block[] = {"A=1=2", "A=3", "broken", nullptr};

  EXPECT_THAT(EnvironmentMap(block), ElementsAre(Pair("A", "1=2")));
}

}  // namespace
}  // namespace slipstream
