#include <dlfcn.h>
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "absl/strings/match.h"
#include "worker/compute/cuda/conv_descriptors.h"
#include "worker/compute/cuda/cuda_libraries.h"

namespace slipstream::cuda {
namespace {

// Checks our use of NVIDIA's own libraries. They must be installed, but need no GPU for this.
// Simulated libraries are checked, too.

template <typename Table>
class LibraryTest : public testing::Test {};

using Tables = testing::Types<CublasLt, Cudnn, Nccl>;
TYPED_TEST_SUITE(LibraryTest, Tables);

TYPED_TEST(LibraryTest, HasAllThatIsUsedOfIt) {
  const auto table = TypeParam::Load();
  if (absl::StrContains(table.status().message(), "could not be loaded")) {
    GTEST_SKIP() << table.status().message();
  }

  EXPECT_TRUE(table.ok()) << table.status();
}

Conv2dShape Convolution(const ExampleShape& input, uint32_t channels, uint32_t kernel,
                        uint32_t stride, uint32_t padding) {
  const auto extent = [&](uint32_t length) { return (length + 2 * padding - kernel) / stride + 1; };
  return {.input = input,
          .output = {channels, extent(input.height), extent(input.width)},
          .kernel = kernel,
          .stride = stride,
          .padding = padding};
}

TEST(ConvDescriptorsTest, CudnnComputesTheSameShapeOfTheOutput) {
  const auto dnn = Cudnn::Load();
  if (!dnn.ok()) GTEST_SKIP() << dnn.status().message();
  const auto output_shape = reinterpret_cast<decltype(&::cudnnGetConvolution2dForwardOutputDim)>(
      dlsym(RTLD_DEFAULT, "cudnnGetConvolution2dForwardOutputDim"));
  const std::vector<Conv2dShape> shapes = {
      Convolution({1, 28, 28}, 6, 5, 1, 2),  Convolution({6, 14, 14}, 16, 5, 1, 0),
      Convolution({3, 32, 32}, 32, 5, 1, 2), Convolution({3, 7, 9}, 5, 3, 2, 1),
      Convolution({2, 1, 1}, 1, 1, 1, 0),    Convolution({4, 6, 5}, 3, 5, 3, 0),
  };
  for (const Conv2dShape& shape : shapes) {
    SCOPED_TRACE(testing::Message() << shape.input.channels << " channels of " << shape.input.height
                                    << " x " << shape.input.width << ", kernel " << shape.kernel);
    auto descriptors = ConvDescriptors::New(**dnn, shape);
    ASSERT_TRUE(descriptors.ok()) << descriptors.status();
    const absl::Status set = descriptors->SetCount(**dnn, shape, 64);
    ASSERT_TRUE(set.ok()) << set;
    if (output_shape == nullptr) continue;  // A simulated library.

    std::array<int, 4> found = {};
    ASSERT_EQ(output_shape(descriptors->geometry(), descriptors->input(), descriptors->filter(),
                           &found[0], &found[1], &found[2], &found[3]),
              CUDNN_STATUS_SUCCESS);
    const std::array<int, 4> expected = {64, static_cast<int>(shape.output.channels),
                                         static_cast<int>(shape.output.height),
                                         static_cast<int>(shape.output.width)};
    EXPECT_EQ(found, expected);
  }
}

}  // namespace
}  // namespace slipstream::cuda
