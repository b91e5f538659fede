#include "common/model/net_shapes.h"

#include <gtest/gtest.h>

namespace slipstream {
namespace {

ModelSpec Net(std::vector<uint32_t> input, std::vector<LayerSpec> layers) {
  return {.preset = "", .input = std::move(input), .layers = std::move(layers)};
}

ShapeError ErrorOf(const ModelSpec& model) {
  const auto result = InferShapes(model);
  const auto* error = std::get_if<ShapeError>(&result);
  return error != nullptr ? *error : ShapeError{-2, "no error"};
}

TEST(NetShapesTest, NamesParametersByLayerWeightBeforeBias) {
  const auto net = std::get<NetShapes>(
      InferShapes(Net({1, 4, 4}, {Conv2dLayer{.channels = 2, .kernel = 3}, ReluLayer{},
                                  FlattenLayer{}, DenseLayer{10}})));

  std::string names;
  for (const Tensor& tensor : net.layout.tensors()) names += tensor.name + " ";
  EXPECT_EQ(names, "0.weight 0.bias 3.weight 3.bias ");
  EXPECT_EQ(net.layout.Find("0.weight")->shape, (std::vector<uint64_t>{2, 1, 3, 3}));
  EXPECT_EQ(net.layout.Find("3.weight")->shape, (std::vector<uint64_t>{10, 8}));
  EXPECT_EQ(net.input(), (ExampleShape{1, 4, 4}));
  EXPECT_EQ(net.outputs(), 10u);
}

TEST(NetShapesTest, NormalisationKeepsTheShapeAndHasAMiddle) {
  const auto net = std::get<NetShapes>(
      InferShapes(Net({2, 4, 5}, {LrnLayer{.size = 5}, FlattenLayer{}, DenseLayer{10}})));

  EXPECT_EQ(net.shapes[1], net.input());
  EXPECT_EQ(ErrorOf(Net({2, 4, 5}, {LrnLayer{.size = 4}})).Text(),
            "layer 0: size must be odd and at most 255");
  EXPECT_EQ(ErrorOf(Net({2, 4, 5}, {LrnLayer{.alpha = -1}})).Text(),
            "layer 0: alpha must be at least 0");
}

TEST(NetShapesTest, OnlyLayersThatSaySoHaveNormalWeights) {
  const auto net = std::get<NetShapes>(InferShapes(
      Net({4, 1, 1}, {DenseLayer{.units = 3}, DenseLayer{.units = 2, .init_normal = 0.5f}})));

  EXPECT_EQ(net.normal_weights, (std::map<std::string, float>{{"1.weight", 0.5f}}));
}

struct WindowCase {
  uint32_t length;
  uint32_t kernel;
  uint32_t stride;
  bool ceil;
  uint32_t expected;
};

class PoolSizeTest : public testing::TestWithParam<WindowCase> {};

TEST_P(PoolSizeTest, CountsWindowsAsPyTorchDoes) {
  const WindowCase& test = GetParam();
  const PoolLayer pool = {.kernel = test.kernel, .stride = test.stride, .ceil = test.ceil};

  const auto net =
      std::get<NetShapes>(InferShapes(Net({3, test.length, test.length}, {pool, FlattenLayer{}})));

  EXPECT_EQ(net.shapes[1], (ExampleShape{3, test.expected, test.expected}));
}

// In the last case a third window would start at 4, behind the input, so it does not count.
INSTANTIATE_TEST_SUITE_P(
    Table, PoolSizeTest,
    testing::Values(WindowCase{32, 3, 2, false, 15}, WindowCase{32, 3, 2, true, 16},
                    WindowCase{28, 2, 2, true, 14}, WindowCase{5, 2, 2, true, 3},
                    WindowCase{5, 2, 2, false, 2}, WindowCase{3, 3, 1, true, 1},
                    WindowCase{4, 1, 2, true, 2}));

TEST(NetShapesTest, ConvolutionWithPaddingAndStride) {
  const auto net = std::get<NetShapes>(InferShapes(
      Net({3, 11, 8},
          {Conv2dLayer{.channels = 4, .kernel = 5, .stride = 2, .padding = 2}, FlattenLayer{}})));

  EXPECT_EQ(net.shapes[1], (ExampleShape{4, 6, 4}));
}

TEST(NetShapesTest, OnlyClassesMustBeMoreThanOne) {
  ModelSpec net = Net({3, 1, 1}, {DenseLayer{1}});

  EXPECT_EQ(ErrorOf(net).layer, 0);
  net.loss = ModelSpec::Loss::kMse;
  EXPECT_EQ(std::get<NetShapes>(InferShapes(net)).outputs(), 1u);
}

TEST(NetShapesTest, SaysWhichLayerDoesNotFit) {
  const auto error_layer = [](std::vector<LayerSpec> layers) {
    return ErrorOf(Net({1, 8, 8}, std::move(layers))).layer;
  };

  EXPECT_EQ(error_layer({}), -1);
  EXPECT_EQ(error_layer({DenseLayer{10}}), 0);
  EXPECT_EQ(error_layer({FlattenLayer{}, Conv2dLayer{.channels = 1, .kernel = 3}}), 1);
  EXPECT_EQ(error_layer({FlattenLayer{}, PoolLayer{}}), 1);
  EXPECT_EQ(error_layer({Conv2dLayer{.channels = 1, .kernel = 9}, FlattenLayer{}}), 0);
  EXPECT_EQ(error_layer({Conv2dLayer{.channels = 1, .kernel = 3, .padding = 3}}), 0);
  EXPECT_EQ(error_layer({Conv2dLayer{.channels = 0, .kernel = 3}}), 0);
  EXPECT_EQ(error_layer({PoolLayer{.stride = 0}}), 0);
  EXPECT_EQ(error_layer({PoolLayer{.kernel = 0}}), 0);
  EXPECT_EQ(error_layer({FlattenLayer{}, DropoutLayer{1.0f}}), 1);
  EXPECT_EQ(error_layer({FlattenLayer{}, DenseLayer{0}}), 1);
  EXPECT_EQ(error_layer({FlattenLayer{}, DenseLayer{1}}), 1);
  EXPECT_EQ(error_layer({ReluLayer{}}), 0);
}

TEST(NetShapesTest, RefusesBadInputs) {
  EXPECT_EQ(ErrorOf(Net({28, 28}, {FlattenLayer{}})).layer, -1);
  EXPECT_EQ(ErrorOf(Net({1, 0, 28}, {FlattenLayer{}})).layer, -1);
  EXPECT_EQ(ErrorOf(Net({1u << 20, 1u << 20, 1}, {FlattenLayer{}})).layer, -1);
}

TEST(NetShapesTest, RefusesNetsTooLargeToCountInsteadOfOverflowing) {
  EXPECT_EQ(ErrorOf(Net({1, 4096, 4096}, {Conv2dLayer{.channels = 1u << 24, .kernel = 1}})).layer,
            0);
  EXPECT_EQ(ErrorOf(Net({1, 4096, 4096}, {FlattenLayer{}, DenseLayer{1u << 24}})).layer, 1);
  EXPECT_EQ(ErrorOf(Net({1, 8, 8}, {PoolLayer{.kernel = 4'000'000'000u}})).layer, 0);
  EXPECT_EQ(
      ErrorOf(Net({1, 8, 8}, {Conv2dLayer{.channels = 1, .kernel = 9, .padding = 4'000'000'000u}}))
          .layer,
      0);
}

}  // namespace
}  // namespace slipstream
