#include "common/model/presets.h"

#include <gtest/gtest.h>

#include <string>

#include "common/model/net_shapes.h"

namespace slipstream {
namespace {

NetShapes ShapesOf(std::string_view preset) {
  return std::get<NetShapes>(InferShapes(*FindPreset(preset)));
}

TEST(PresetsTest, EveryPresetHasTheParametersItsDocumentationSays) {
  EXPECT_EQ(ShapesOf("mlp").layout.parameters(), 235'146u);
  EXPECT_EQ(ShapesOf("lenet5").layout.parameters(), 61'706u);
  EXPECT_EQ(ShapesOf("cifar_quick").layout.parameters(), 89'578u);
  EXPECT_EQ(ShapesOf("rudra_cifar").layout.parameters(), 89'578u);
  EXPECT_EQ(ShapesOf("vgg_small").layout.parameters(), 3'248'202u);
  EXPECT_EQ(ShapesOf("alexnet").layout.parameters(), 71'953'802u);
}

TEST(PresetsTest, EveryNameIsFoundAndCarriesItsName) {
  for (std::string_view name : PresetNames()) {
    ASSERT_TRUE(FindPreset(name).has_value()) << name;
    EXPECT_EQ(FindPreset(name)->preset, name);
    EXPECT_EQ(ShapesOf(name).outputs(), 10u) << name;
  }
  EXPECT_FALSE(FindPreset("lenet6").has_value());
}

TEST(PresetsTest, CifarQuickShrinksFrom32To16To8To4) {
  const NetShapes net = ShapesOf("cifar_quick");

  EXPECT_EQ(net.shapes[2], (ExampleShape{32, 16, 16}));
  EXPECT_EQ(net.shapes[6], (ExampleShape{32, 8, 8}));
  EXPECT_EQ(net.shapes[9], (ExampleShape{64, 4, 4}));
  EXPECT_EQ(net.shapes[10], (ExampleShape{1024, 1, 1}));
}

TEST(PresetsTest, RudrasNetIsCifarQuickWithTwoNormalisations) {
  std::vector<LayerSpec> layers = FindPreset("rudra_cifar")->layers;

  EXPECT_EQ(layers[3], LayerSpec(LrnLayer{}));
  EXPECT_EQ(layers[7], LayerSpec(LrnLayer{}));
  EXPECT_EQ(std::get<Conv2dLayer>(layers[0]).init_normal, 1e-4f);
  EXPECT_EQ(std::get<Conv2dLayer>(layers[4]).init_normal, 0.01f);
  EXPECT_EQ(std::get<Conv2dLayer>(layers[8]).init_normal, 0.01f);
  EXPECT_EQ(std::get<DenseLayer>(layers[12]).init_normal, 0.01f);
  std::erase(layers, LayerSpec(LrnLayer{}));
  std::get<Conv2dLayer>(layers[0]).init_normal.reset();
  std::get<Conv2dLayer>(layers[3]).init_normal.reset();
  std::get<Conv2dLayer>(layers[6]).init_normal.reset();
  std::get<DenseLayer>(layers[10]).init_normal.reset();
  EXPECT_EQ(layers, FindPreset("cifar_quick")->layers);
}

TEST(PresetsTest, CifarQuickPoolsBeforeTheFirstReluAndAfterTheOthers) {
  const std::vector<LayerSpec> layers = FindPreset("cifar_quick")->layers;

  EXPECT_TRUE(std::holds_alternative<PoolLayer>(layers[1]));
  EXPECT_TRUE(std::holds_alternative<ReluLayer>(layers[2]));
  EXPECT_TRUE(std::holds_alternative<ReluLayer>(layers[4]));
  EXPECT_TRUE(std::holds_alternative<PoolLayer>(layers[5]));
}

}  // namespace
}  // namespace slipstream
