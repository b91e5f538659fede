#include "worker/model/initial_values.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <variant>
#include <vector>

#include "common/model/net_shapes.h"
#include "common/model/presets.h"

namespace slipstream {
namespace {

TensorLayout LayoutOf(std::string_view preset) {
  return std::get<NetShapes>(InferShapes(*FindPreset(preset))).layout;
}

std::vector<float> InitialValues(const TensorLayout& layout, uint64_t seed) {
  std::vector<float> weights(layout.parameters(), 100.0f);
  FillInitialValues(layout, seed, weights);
  return weights;
}

struct Moments {
  double mean = 0, deviation = 0, smallest = 0, largest = 0;
};

Moments MomentsOf(const std::vector<float>& weights, const Tensor& tensor) {
  const auto begin = weights.begin() + static_cast<std::ptrdiff_t>(tensor.offset);
  const auto end = begin + static_cast<std::ptrdiff_t>(tensor.size());
  Moments moments;
  for (auto it = begin; it != end; ++it) moments.mean += *it;
  moments.mean /= static_cast<double>(tensor.size());
  for (auto it = begin; it != end; ++it) {
    moments.deviation += (*it - moments.mean) * (*it - moments.mean);
  }
  moments.deviation = std::sqrt(moments.deviation / static_cast<double>(tensor.size()));
  moments.smallest = *std::min_element(begin, end);
  moments.largest = *std::max_element(begin, end);
  return moments;
}

TEST(InitialValuesTest, WeightsAreUniformInTheBoundOfTheirFanIn) {
  const TensorLayout layout = LayoutOf("cifar_quick");
  const std::vector<float> weights = InitialValues(layout, 7);

  for (const Tensor& tensor : layout.tensors()) {
    if (tensor.size() < 1000) continue;
    SCOPED_TRACE(tensor.name);
    const double fan_in = static_cast<double>(tensor.size() / tensor.shape.front());
    const double bound = 1 / std::sqrt(fan_in);

    const Moments moments = MomentsOf(weights, tensor);

    // Allow five standard deviations of the mean of this many uniform values.
    const double deviation = bound / std::sqrt(3.0);
    EXPECT_NEAR(moments.mean, 0, 5 * deviation / std::sqrt(static_cast<double>(tensor.size())));
    EXPECT_NEAR(moments.deviation, deviation, 0.05 * deviation);
    EXPECT_GE(moments.smallest, -bound);
    EXPECT_LT(moments.largest, bound);
    EXPECT_GT(moments.largest, 0.98 * bound);
  }
}

TEST(InitialValuesTest, ABiasTakesTheBoundOfItsWeight) {
  const TensorLayout layout = LayoutOf("mlp");
  const std::vector<float> weights = InitialValues(layout, 3);

  const Moments moments = MomentsOf(weights, *layout.Find("1.bias"));

  const double bound = 1 / std::sqrt(784.0);
  EXPECT_GE(moments.smallest, -bound);
  EXPECT_LT(moments.largest, bound);
  EXPECT_GT(moments.largest, 0.9 * bound);
}

TEST(InitialValuesTest, DependOnTheSeedAlone) {
  const TensorLayout layout = LayoutOf("lenet5");

  EXPECT_EQ(InitialValues(layout, 1), InitialValues(layout, 1));
  EXPECT_NE(InitialValues(layout, 1), InitialValues(layout, 2));
}

// The digest was recorded once: all machines and versions must start from the same weights.
TEST(InitialValuesTest, AreTheSameEverywhere) {
  const TensorLayout layout = LayoutOf("mlp");
  const std::vector<float> weights = InitialValues(layout, 1);

  uint64_t digest = 0xcbf29ce484222325;
  for (const float weight : weights) {
    uint32_t bits = 0;
    std::memcpy(&bits, &weight, sizeof bits);
    digest = (digest ^ bits) * 0x100000001b3;
  }

  EXPECT_EQ(digest, 11719214477584273288u);
}

TEST(InitialValuesTest, NormalWeightsHaveTheirDeviationAndBiasesAreZero) {
  const NetShapes net = std::get<NetShapes>(InferShapes(*FindPreset("rudra_cifar")));
  std::vector<float> weights(net.layout.parameters(), 100.0f);
  FillInitialValues(net.layout, 7, weights, net.normal_weights);

  EXPECT_EQ(net.normal_weights.size(), 4u);
  for (const Tensor& tensor : net.layout.tensors()) {
    SCOPED_TRACE(tensor.name);
    const Moments moments = MomentsOf(weights, tensor);
    if (tensor.name.ends_with(".bias")) {
      EXPECT_EQ(moments.smallest, 0);
      EXPECT_EQ(moments.largest, 0);
      continue;
    }
    const double deviation = tensor.name == "0.weight" ? 1e-4 : 0.01;
    // Allow five standard deviations of the mean and the deviation of this many values.
    const auto size = static_cast<double>(tensor.size());
    EXPECT_NEAR(moments.mean, 0, 5 * deviation / std::sqrt(size));
    EXPECT_NEAR(moments.deviation, deviation, 5 * deviation / std::sqrt(2 * size));
    // Of 2,400 normal values or more, some lie beyond three deviations and none beyond seven.
    EXPECT_GT(moments.largest, 3 * deviation);
    EXPECT_LT(moments.largest, 7 * deviation);
  }
}

TEST(InitialValuesTest, ALayerOfNormalWeightsLeavesTheOthersAlone) {
  const TensorLayout layout = LayoutOf("mlp");
  const std::vector<float> uniform = InitialValues(layout, 1);
  std::vector<float> mixed(layout.parameters());
  FillInitialValues(layout, 1, mixed, {{"3.weight", 0.1f}});

  for (const Tensor& tensor : layout.tensors()) {
    const bool is_normal = tensor.name.starts_with("3.");
    EXPECT_EQ(mixed[tensor.offset] != uniform[tensor.offset], is_normal) << tensor.name;
  }
}

TEST(InitialValuesTest, TensorsThatAreNeitherWeightNorBiasStartAtZero) {
  TensorLayout layout;
  ASSERT_TRUE(layout.Append("scale", {8}).ok());

  EXPECT_EQ(InitialValues(layout, 1), std::vector<float>(8, 0.0f));
}

}  // namespace
}  // namespace slipstream
