#include "common/layout/tensor_layout.h"

#include <gtest/gtest.h>

namespace slipstream {
namespace {

TensorLayout TwoTensors() {
  TensorLayout layout;
  EXPECT_TRUE(layout.Append("0.weight", {6, 1, 5, 5}).ok());
  EXPECT_TRUE(layout.Append("0.bias", {6}).ok());
  return layout;
}

TEST(TensorLayoutTest, LaysTensorsOneAfterAnotherWithoutGaps) {
  const TensorLayout layout = TwoTensors();

  ASSERT_EQ(layout.tensors().size(), 2u);
  EXPECT_EQ(layout.tensors()[0].offset, 0u);
  EXPECT_EQ(layout.tensors()[0].size(), 150u);
  EXPECT_EQ(layout.tensors()[1].offset, 150u);
  EXPECT_EQ(layout.parameters(), 156u);
}

TEST(TensorLayoutTest, FindsATensorByItsName) {
  const TensorLayout layout = TwoTensors();

  ASSERT_NE(layout.Find("0.bias"), nullptr);
  EXPECT_EQ(layout.Find("0.bias")->offset, 150u);
  EXPECT_EQ(layout.Find("0.bia"), nullptr);
}

TEST(TensorLayoutTest, RefusesBadTensorsAndStaysAsItWas) {
  TensorLayout layout = TwoTensors();
  const TensorLayout before = layout;

  EXPECT_FALSE(layout.Append("", {1}).ok());
  EXPECT_FALSE(layout.Append("0.bias", {6}).ok());
  EXPECT_FALSE(layout.Append(std::string(TensorLayout::kNameBytesMax + 1, 'x'), {1}).ok());
  EXPECT_FALSE(layout.Append("zero", {4, 0}).ok());
  EXPECT_FALSE(layout.Append("deep", std::vector<uint64_t>(9, 1)).ok());
  EXPECT_FALSE(layout.Append("large", {TensorLayout::kParametersMax}).ok());
  // The product wraps around at 64 bits to a small number.
  EXPECT_FALSE(layout.Append("wraps", {uint64_t{1} << 32, uint64_t{1} << 32, 2}).ok());
  EXPECT_FALSE(layout.Append("wraps", {uint64_t{1} << 63, 3}).ok());

  EXPECT_EQ(layout, before);
}

TEST(TensorLayoutTest, AcceptsExactlyTheLimits) {
  TensorLayout layout;

  EXPECT_TRUE(layout.Append("scalar", {}).ok());
  EXPECT_TRUE(layout.Append("rest", {TensorLayout::kParametersMax - 1}).ok());
  EXPECT_FALSE(layout.Append("one more", {1}).ok());
}

TEST(TensorLayoutTest, RefusesATensorPastTheLimitInTime) {
  TensorLayout layout;
  for (size_t i = 0; i < TensorLayout::kTensorsMax; ++i) {
    ASSERT_TRUE(layout.Append(std::to_string(i), {1}).ok());
  }
  EXPECT_FALSE(layout.Append("one more", {1}).ok());
}

TEST(TensorLayoutTest, SaysWhereTensorsLieWithinARange) {
  TensorLayout layout;
  for (const char* name : {"a", "b", "c"}) ASSERT_TRUE(layout.Append(name, {10}).ok());
  using Ranges = std::vector<ParameterRange>;

  EXPECT_EQ(layout.TensorsWithin({0, 30}), (Ranges{{0, 10}, {10, 20}, {20, 30}}));
  EXPECT_EQ(layout.TensorsWithin({10, 20}), (Ranges{{0, 10}}));
  EXPECT_EQ(layout.TensorAt(9), 0u);
  EXPECT_EQ(layout.TensorAt(10), 1u);
  EXPECT_EQ(layout.TensorAt(30), 3u) << "nobody has it";
  EXPECT_EQ(layout.TensorsWithin({5, 25}), (Ranges{{0, 5}, {5, 15}, {15, 20}}));
}

TEST(TensorLayoutTest, FingerprintIsTheSameOnEveryMachineAndVersion) {
  EXPECT_EQ(TwoTensors().Fingerprint(), 14'019'245'565'136'193'563u);
}

TEST(TensorLayoutTest, FingerprintTellsNamesShapesAndOrderApart) {
  const auto fingerprint = [](std::vector<std::pair<std::string, std::vector<uint64_t>>> tensors) {
    TensorLayout layout;
    for (auto& [name, shape] : tensors) EXPECT_TRUE(layout.Append(name, shape).ok());
    return layout.Fingerprint();
  };
  const uint64_t base = fingerprint({{"a", {2, 3}}, {"b", {6}}});

  EXPECT_EQ(base, fingerprint({{"a", {2, 3}}, {"b", {6}}}));
  EXPECT_NE(base, fingerprint({{"a", {3, 2}}, {"b", {6}}}));
  EXPECT_NE(base, fingerprint({{"b", {6}}, {"a", {2, 3}}}));
  EXPECT_NE(base, fingerprint({{"a", {2, 3}}, {"c", {6}}}));
  EXPECT_NE(base, fingerprint({{"a 2 3\n1:b", {6}}}));
}

}  // namespace
}  // namespace slipstream
