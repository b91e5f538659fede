#include "common/settings/device_choice.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace slipstream {
namespace {

TEST(DeviceChoiceTest, ReadsWhatItWrites) {
  for (const char* text :
       {"auto", "cpu", "cuda", "cuda:0", "cuda:17", "cuda:255", "cuda:1,0", "cuda:0,1,2,3"}) {
    const auto choice = DeviceChoice::FromText(text);

    ASSERT_TRUE(choice.has_value()) << text;
    EXPECT_EQ(choice->ToText(), text);
  }
  EXPECT_EQ(DeviceChoice::FromText("cuda")->kind, DeviceChoice::Kind::kAnyCuda);
  EXPECT_EQ(DeviceChoice::FromText("cuda:3,1")->indices, (std::vector<uint32_t>{3, 1}));
}

TEST(DeviceChoiceTest, RefusesEverythingElse) {
  for (const char* text :
       {"", "gpu", "CUDA", "cuda:", "cuda:256", "cuda:-1", "cuda:+1", "cuda: 1", "cuda:1x",
        "cuda:99999999999", "cpu:0", "cuda:,", "cuda:1,", "cuda:1, 2", "cuda:1,1", "cuda:0,256",
        "cuda:0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16"}) {
    EXPECT_FALSE(DeviceChoice::FromText(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace slipstream
