#include "common/process/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace slipstream {
namespace {

using testing::ElementsAre;
using testing::Pair;

TEST(EnvironmentTest, TakesTheFirstOfAName) {
  const char* const block[] = {"A=1=2", "A=3", "broken", nullptr};

  EXPECT_THAT(EnvironmentMap(block), ElementsAre(Pair("A", "1=2")));
}

}  // namespace
}  // namespace slipstream
