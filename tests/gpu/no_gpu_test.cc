#include <gtest/gtest.h>

#include <string>

#include "common/base/ids.h"
#include "common/settings/device_choice.h"
#include "worker/compute/cuda/cuda_device.h"
#include "worker/compute/open_device.h"

namespace slipstream {
namespace {

// Runs on a machine without a GPU, or in a program built without CUDA.
class NoGpuTest : public testing::Test {
 protected:
  void SetUp() override {
    if (NewCudaDevice(0).ok()) GTEST_SKIP() << "there is a GPU";
  }

  DeviceClaim claim_;
};

TEST_F(NoGpuTest, AskingForOneSaysWhatToDo) {
  const auto device = OpenDevice(*DeviceChoice::FromText("cuda"), WorkerId(0), claim_);

  // This code makes a program exit with the status of a wrong configuration.
  EXPECT_EQ(device.status().code(), absl::StatusCode::kInvalidArgument) << device.status();
  EXPECT_NE(device.status().ToString().find("set compute.device to cpu"), std::string::npos)
      << device.status();
}

TEST_F(NoGpuTest, TheProcessorTakesItsPlaceIfAnyDeviceWillDo) {
  EXPECT_TRUE(OpenDevice(*DeviceChoice::FromText("auto"), WorkerId(0), claim_).ok());
  EXPECT_TRUE(OpenDevice(*DeviceChoice::FromText("cpu"), WorkerId(0), claim_).ok());
}

}  // namespace
}  // namespace slipstream
