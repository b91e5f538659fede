#include "worker/training/host_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <variant>
#include <vector>

#include "common/base/philox.h"
#include "common/model/net_shapes.h"
#include "tests/support/fake_device.h"
#include "worker/compute/cpu/cpu_device.h"
#include "worker/model/initial_values.h"

namespace slipstream {
namespace {

using Arena = LocalModel::Arena;

/// A model that is larger than the pieces in which it is updated.
const ModelSpec kModel = {
    .preset = "", .input = {90, 1, 1}, .layers = {DenseLayer{200}, ReluLayer{}, DenseLayer{3}}};

/// A host model beside a plan whose values the host cannot access.
class HostModelTest : public testing::Test {
 protected:
  HostModelTest()
      : layout_(std::get<NetShapes>(InferShapes(kModel)).layout),
        cpu_(NewCpuDevice()),
        device_(NewFakeDevice(*cpu_)),
        plan_(*device_->Prepare(kModel, {.batch_size_max = 2, .seed = 1})) {
    FillInitialValues(layout_, 1, plan_->weights_host());
    plan_->WeightsArrived({0, layout_.parameters()});
  }

  /// Computes the gradient of a random mini-batch at the device's weights.
  void Compute() {
    std::vector<float> examples(2 * 90);
    for (float& value : examples) value = random_.Uniform(-1, 1);
    const std::vector<uint32_t> labels = {0, 2};
    ASSERT_TRUE(plan_->StartStep({examples, labels, 0, {}}, nullptr).ok());
    ASSERT_TRUE(plan_->FinishStep().ok());
  }

  std::vector<float> weights() const { return Copy(plan_->weights_host()); }
  static std::vector<float> Copy(std::span<const float> values) {
    return {values.begin(), values.end()};
  }

  const TensorLayout layout_;
  const std::unique_ptr<Device> cpu_;
  const std::unique_ptr<Device> device_;
  const std::unique_ptr<Plan> plan_;
  RandomStream random_{7, 0};
};

/// Updates whole arrays by the rule, like a server with one shard.
class Reference {
 public:
  Reference(const OptimizerSpec& optimizer, const TensorLayout& layout)
      : rule_(MakeUpdateRule(optimizer)), row_(RowOf(optimizer.kind)), layout_(layout) {
    scalars_ = rule_->InitialScalars();
    for (std::vector<float>& state : states_) state.resize(layout.parameters());
  }

  std::vector<float> Step(const std::vector<float>& weights, std::span<const float> gradient,
                          float rate) {
    std::vector<float> next(weights.size());
    auto states = states_;
    UpdateArrays arrays = {.weights_in = weights, .weights_out = next};
    for (uint32_t i = 0; i < row_.state_arrays; ++i) arrays.states[i] = {states_[i], states[i]};
    scalars_ = rule_->Next(scalars_);
    rule_->Update(arrays, {.sum = gradient}, {.rate = rate}, scalars_, Stores::kCached);
    if (row_.measures_tensors) {
      for (const ParameterRange& tensor : layout_.TensorsWithin({0, weights.size()})) {
        rule_->FinishTensor(std::span(weights).subspan(tensor.begin, tensor.size()),
                            std::span(next).subspan(tensor.begin, tensor.size()), {.rate = rate});
      }
    }
    states_ = states;
    return next;
  }

 private:
  const std::unique_ptr<const UpdateRule> rule_;
  const RuleRow& row_;
  const TensorLayout layout_;
  RuleScalars scalars_;
  std::array<std::vector<float>, kStateArraysMax> states_;
};

TEST_F(HostModelTest, StepsAsTheRuleOfAServerDoes) {
  for (const RuleRow& row : kRuleRows) {
    SCOPED_TRACE(row.name);
    OptimizerSpec optimizer;
    optimizer.kind = row.kind;
    optimizer.weight_decay = 0.01;
    HostModel model(optimizer, layout_, false, *plan_);
    Reference reference(optimizer, layout_);
    for (int step = 0; step < 3; ++step) {
      Compute();
      const std::vector<float> wanted = reference.Step(weights(), plan_->gradients_host(), 0.01f);

      model.Step(0.01);

      ASSERT_EQ(weights(), wanted) << "step " << step;
    }
  }
}

/// Every reference steps all tensors, and the model each tensor as one of them does.
TEST_F(HostModelTest, StepsTensorsByOptionsOfTheirOwn) {
  for (const RuleRow& row : kRuleRows) {
    SCOPED_TRACE(row.name);
    OptimizerSpec optimizer;
    optimizer.kind = row.kind;
    optimizer.weight_decay = 0.01;
    Reference with_decay(optimizer, layout_);
    optimizer.weight_decay = 0;
    Reference without_decay(optimizer, layout_);
    optimizer.weight_decay = 0.01;
    optimizer.per_tensor = {{.match = "*.bias", .weight_decay = 0, .learning_rate_factor = 0.5},
                            {.match = "2.*", .learning_rate_factor = 0}};
    HostModel model(optimizer, layout_, false, *plan_);
    for (int step = 0; step < 3; ++step) {
      Compute();
      std::vector<float> wanted = with_decay.Step(weights(), plan_->gradients_host(), 0.01f);
      const auto biases = without_decay.Step(weights(), plan_->gradients_host(), 0.005f);
      for (const Tensor& tensor : layout_.tensors()) {
        if (tensor.name == "0.weight") continue;
        const std::vector<float> from = tensor.name.ends_with(".bias") ? biases : weights();
        std::copy_n(from.begin() + tensor.offset, tensor.size(), wanted.begin() + tensor.offset);
      }

      model.Step(0.01);

      ASSERT_EQ(weights(), wanted) << "step " << step;
    }
  }
}

TEST_F(HostModelTest, TheNextGradientIsOfTheWeightsThatAStepHasMade) {
  HostModel model(OptimizerSpec(), layout_, false, *plan_);
  Compute();
  model.Step(0.5);
  const std::unique_ptr<Plan> other = *cpu_->Prepare(kModel, {.batch_size_max = 2, .seed = 1});
  std::ranges::copy(weights(), other->weights_host().begin());

  const std::vector<float> examples(2 * 90, 0.5f);
  const std::vector<uint32_t> labels = {0, 2};
  for (Plan* plan : {plan_.get(), other.get()}) {
    ASSERT_TRUE(plan->StartStep({examples, labels, 0, {}}, nullptr).ok());
    ASSERT_TRUE(plan->FinishStep().ok());
  }

  EXPECT_EQ(Copy(plan_->gradients_host()), Copy(other->gradients_host()));
}

TEST_F(HostModelTest, CombinesArenasElementByElement) {
  HostModel model(OptimizerSpec(), layout_, false, *plan_);
  Compute();
  const std::vector<float> first = weights();
  const std::vector<float> gradient = Copy(plan_->gradients_host());

  model.Combine(Arena::kAnchor, 1, Arena::kWeights, 0, Arena::kWeights);
  model.Combine(Arena::kWeights, 1, Arena::kWeights, -2, Arena::kGradient);
  model.Combine(Arena::kGradient, 1, Arena::kAnchor, -1, Arena::kWeights);

  for (size_t i = 0; i < first.size(); ++i) {
    const float moved = first[i] - 2 * gradient[i];
    ASSERT_EQ(weights()[i], moved) << i;
    ASSERT_EQ(plan_->gradients_host()[i], first[i] - moved) << i;
  }
}

}  // namespace
}  // namespace slipstream
