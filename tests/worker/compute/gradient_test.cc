#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <tuple>

#include "tests/worker/compute/small_nets.h"
#include "worker/compute/cpu/cpu_device.h"

namespace slipstream {
namespace {

class GradientTest : public testing::TestWithParam<std::tuple<SmallNet, CpuKernels>> {};

TEST_P(GradientTest, IsTheDerivativeOfTheLoss) {
  const auto& [net, kernels] = GetParam();

  ExpectGradientIsTheDerivativeOfTheLoss(*NewCpuDevice(kernels), net);
}

std::string NameOf(const testing::TestParamInfo<std::tuple<SmallNet, CpuKernels>>& info) {
  static constexpr const char* kNames[] = {"Fastest", "OneDnn", "Plain"};
  const auto& [net, kernels] = info.param;
  return net.name + kNames[static_cast<int>(kernels)];
}

INSTANTIATE_TEST_SUITE_P(Nets, GradientTest,
                         testing::Combine(testing::ValuesIn(SmallNets()),
                                          testing::Values(CpuKernels::kFastest, CpuKernels::kOneDnn,
                                                          CpuKernels::kPlain)),
                         NameOf);

}  // namespace
}  // namespace slipstream
