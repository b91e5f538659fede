#include "common/run/device_choice.h"

#include <gtest/gtest.h>

namespace slipstream {
namespace {

TEST(DeviceChoiceTest, ReadsWhatItWrites) {
  for (const char* text : {"auto", "cpu", "cuda", "cuda:0", "cuda:17", "cuda:255"}) {
    const auto choice = DeviceChoice::FromText(text);

    ASSERT_TRUE(choice.has_value()) << text;
    EXPECT_EQ(choice->ToText(), text);
  }
  EXPECT_EQ(DeviceChoice::FromText("cuda")->kind, DeviceChoice::Kind::kAnyCuda);
  EXPECT_EQ(DeviceChoice::FromText("cuda:3")->index, 3u);
}

TEST(DeviceChoiceTest, RefusesEverythingElse) {
  for (const char* text : {"", "gpu", "CUDA", "cuda:", "cuda:256", "cuda:-1", "cuda:+1", "cuda: 1",
                           "cuda:1x", "cuda:99999999999", "cpu:0"}) {
    EXPECT_FALSE(DeviceChoice::FromText(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace slipstream
