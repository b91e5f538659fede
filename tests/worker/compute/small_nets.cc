#include "tests/worker/compute/small_nets.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <set>

#include "common/model/net_shapes.h"
#include "tests/worker/compute/double_net.h"
#include "tests/worker/compute/random_batch.h"
#include "tests/worker/compute/training.h"

namespace slipstream {
namespace {

constexpr uint64_t kSeed = 5;

PoolLayer MaxPool(uint32_t kernel, uint32_t stride, bool ceil = false) {
  return {PoolLayer::Kind::kMax, kernel, stride, ceil};
}

PoolLayer AveragePool(uint32_t kernel, uint32_t stride, bool ceil = false) {
  return {PoolLayer::Kind::kAverage, kernel, stride, ceil};
}

// Normalises so much that its derivative differs from that of a factor.
LrnLayer Lrn(LrnLayer::Region region, uint32_t size, float beta) {
  return {.region = region, .size = size, .alpha = 2, .beta = beta};
}

Conv2dLayer Conv(uint32_t channels, uint32_t kernel, uint32_t stride = 1, uint32_t padding = 0) {
  return {channels, kernel, stride, padding};
}

}  // namespace

ModelSpec SmallNet::Model() const {
  ModelSpec model = {.preset = "", .input = input, .layers = layers, .loss = loss};
  model.layers.push_back(FlattenLayer{});
  model.layers.push_back(DenseLayer{3});
  return model;
}

const std::vector<std::string_view>& QuickPresets() {
  static const auto* names = new std::vector<std::string_view>{"mlp", "lenet5", "cifar_quick"};
  return *names;
}

const std::vector<SmallNet>& SmallNets() {
  static const auto* nets = new std::vector<SmallNet>{
      {"Dense", {7, 1, 1}, {DenseLayer{5}}},
      {"DenseRelu", {7, 1, 1}, {DenseLayer{5}, ReluLayer{}}},
      {"DenseTanh", {7, 1, 1}, {DenseLayer{5}, TanhLayer{}}},
      {"DenseDropout", {7, 1, 1}, {DenseLayer{9}, TanhLayer{}, DropoutLayer{0.4f}}},
      {"DropoutFirst", {7, 1, 1}, {DropoutLayer{0.4f}, DenseLayer{4}, ReluLayer{}}},
      {"ReluOfInput", {7, 1, 1}, {ReluLayer{}, DenseLayer{4}, ReluLayer{}, TanhLayer{}}},
      {"Conv1x1", {2, 4, 5}, {Conv(3, 1)}},
      {"Conv3x3", {2, 5, 6}, {Conv(3, 3)}},
      {"Conv3x3Padded", {1, 4, 5}, {Conv(2, 3, 1, 1), ReluLayer{}}},
      {"Conv5x5TwicePadded", {1, 6, 6}, {Conv(2, 5, 1, 2), TanhLayer{}}},
      {"ConvWiderPaddingThanNeeded", {1, 3, 3}, {Conv(2, 3, 1, 2), ReluLayer{}}},
      {"ConvStride2", {2, 7, 6}, {Conv(3, 3, 2), ReluLayer{}}},
      {"ConvStride3Padded", {1, 8, 7}, {Conv(2, 3, 3, 1)}},
      {"ConvEvenKernel", {1, 5, 5}, {Conv(2, 2, 1, 1), ReluLayer{}}},
      {"ConvConv", {1, 6, 6}, {Conv(2, 3), ReluLayer{}, Conv(3, 3), ReluLayer{}}},
      {"ConvReluMaxPool", {1, 6, 6}, {Conv(2, 3), ReluLayer{}, MaxPool(2, 2)}},
      {"ConvMaxPoolRelu", {1, 6, 6}, {Conv(2, 3), MaxPool(2, 2), ReluLayer{}}},
      {"ConvMaxPool", {1, 6, 6}, {Conv(2, 3), MaxPool(2, 2)}},
      {"ConvMaxPoolOfOddSize", {1, 7, 9}, {Conv(2, 3), ReluLayer{}, MaxPool(2, 2)}},
      {"ConvPoolConvPool",
       {1, 12, 12},
       {Conv(2, 3, 1, 1), ReluLayer{}, MaxPool(2, 2), Conv(3, 3), MaxPool(2, 2), ReluLayer{}}},
      {"MaxPoolOverlapping", {1, 7, 7}, {Conv(2, 3, 1, 1), MaxPool(3, 2), ReluLayer{}}},
      {"MaxPoolCeil", {1, 6, 8}, {Conv(2, 3, 1, 1), MaxPool(3, 2, true), ReluLayer{}}},
      {"AveragePool", {1, 6, 6}, {Conv(2, 3), ReluLayer{}, AveragePool(2, 2)}},
      {"AveragePoolCeil", {1, 6, 8}, {Conv(2, 3, 1, 1), ReluLayer{}, AveragePool(3, 2, true)}},
      {"AveragePoolCeilOfOddSize", {1, 7, 9}, {Conv(2, 2), AveragePool(3, 2, true)}},
      {"PoolOfInput", {2, 6, 6}, {AveragePool(2, 2), Conv(2, 2), TanhLayer{}}},
      {"Lrn",
       {1, 7, 6},
       {Conv(2, 3), MaxPool(3, 2, true), ReluLayer{}, Lrn(LrnLayer::Region::kWithin, 3, 0.75f),
        Conv(2, 2)}},
      {"LrnWiderThanTheImage", {1, 5, 4}, {Conv(2, 3), Lrn(LrnLayer::Region::kWithin, 7, 0.5f)}},
      {"LrnAcross", {1, 5, 5}, {Conv(7, 3), Lrn(LrnLayer::Region::kAcross, 5, 0.75f), Conv(2, 2)}},
      {"LrnWithoutGradient",
       {3, 6, 6},
       {AveragePool(2, 2), Lrn(LrnLayer::Region::kAcross, 3, 1.25f), Conv(2, 2)}},
      {"DropoutOfImage", {1, 5, 5}, {Conv(2, 3), ReluLayer{}, DropoutLayer{0.3f}, Conv(2, 2)}},
      {"MseOfOneLayer", {7, 1, 1}, {}, ModelSpec::Loss::kMse},
      {"MseDenseTanh", {7, 1, 1}, {DenseLayer{5}, TanhLayer{}}, ModelSpec::Loss::kMse},
      {"MseConvPool", {1, 6, 6}, {Conv(2, 3), ReluLayer{}, MaxPool(2, 2)}, ModelSpec::Loss::kMse},
      {"WideConv", {1, 3, 3}, {Conv(17, 2), ReluLayer{}, Conv(18, 2), TanhLayer{}}},
  };
  return *nets;
}

std::vector<SmallNet> NetsByFirstLayer() {
  std::vector<SmallNet> nets;
  std::set<size_t> kinds;
  for (const SmallNet& net : SmallNets()) {
    if (kinds.insert(net.Model().layers.front().index()).second) nets.push_back(net);
  }
  return nets;
}

void ExpectGradientIsTheDerivativeOfTheLoss(Device& device, const SmallNet& net) {
  const ModelSpec model = net.Model();
  const NetShapes shapes = InferredShapes(model);
  const RandomBatch random(4, shapes.input().elements(), shapes.outputs(), 11);
  const std::unique_ptr<Plan> plan =
      PrepareWithWeights(device, model, {.batch_size_max = 5, .seed = kSeed});
  const DoubleNet oracle(model, kSeed);

  const Batch batch = random.batch(net.loss);
  const Step step = RunStep(*plan, batch);

  const std::vector<double> weights(plan->weights_host().begin(), plan->weights_host().end());
  EXPECT_NEAR(step.result.loss, oracle.Loss(weights, batch, true), 1e-5);
  EXPECT_NEAR(plan->Evaluate(batch)->loss, oracle.Loss(weights, batch, false), 1e-5);
  EXPECT_EQ(step.result.correct.has_value(), net.loss == ModelSpec::Loss::kCrossEntropy);
  // The sums have at most some hundred single-precision products, each with a relative error of
  // 6e-8.
  ExpectGradientsNear(shapes.layout, step.gradients, oracle.Gradients(plan->weights_host(), batch),
                      3e-5f);
}

}  // namespace slipstream
