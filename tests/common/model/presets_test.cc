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

TEST(PresetsTest, CifarQuickPoolsBeforeTheFirstReluAndAfterTheOthers) {
  const std::vector<LayerSpec> layers = FindPreset("cifar_quick")->layers;

  EXPECT_TRUE(std::holds_alternative<PoolLayer>(layers[1]));
  EXPECT_TRUE(std::holds_alternative<ReluLayer>(layers[2]));
  EXPECT_TRUE(std::holds_alternative<ReluLayer>(layers[4]));
  EXPECT_TRUE(std::holds_alternative<PoolLayer>(layers[5]));
}

}  // namespace
}  // namespace slipstream
