#include "common/kernels/rules/tensor_rules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/base/philox.h"
#include "tests/common/kernels/cut_payload.h"
#include "tests/common/kernels/rule_version.h"

namespace slipstream {
namespace {

using Items = std::vector<TensorOptions>;

/// Tensors of which none ends where a line does: 0.weight is decayed and 0.bias is not, the second
/// layer has a rate of its own, and the third is frozen.
constexpr std::pair<const char*, uint64_t> kTensors[] = {{"0.weight", 700},  {"0.bias", 13},
                                                         {"1.weight", 205},  {"1.bias", 5},
                                                         {"2.weight", 1001}, {"2.bias", 3}};
const Items kItems = {{.match = "2.*", .learning_rate_factor = 0},
                      {.match = "1.*", .weight_decay = 0.3, .learning_rate_factor = 0.1},
                      {.match = "*.bias", .weight_decay = 0}};

const TensorLayout& Layout() {
  static const TensorLayout* const layout = [] {
    auto* const made = new TensorLayout;
    for (const auto& [name, values] : kTensors) EXPECT_TRUE(made->Append(name, {values}).ok());
    return made;
  }();
  return *layout;
}

OptimizerSpec SpecOf(RuleKind kind) {
  OptimizerSpec spec = RuleSpec(kind, 0.01);
  spec.per_tensor = kItems;
  return spec;
}

RuleVersion RandomVersion(size_t count, RandomStream& random) {
  RuleVersion version = {.weights = RandomValues(count, random), .states = {}};
  for (std::vector<float>& state : version.states) {
    state = RandomValues(count, random);
    for (float& value : state) value *= value;  // Some rules take its root.
  }
  return version;
}

/// The same range of a version's values before and after an update.
UpdateArrays Arrays(RuleKind kind, const RuleVersion& from, RuleVersion& to, size_t begin,
                    size_t count) {
  UpdateArrays arrays = {.weights_in = std::span(from.weights).subspan(begin, count),
                         .weights_out = std::span(to.weights).subspan(begin, count)};
  for (size_t i = 0; i < RowOf(kind).state_arrays; ++i) {
    arrays.states[i] = {std::span(from.states[i]).subspan(begin, count),
                        std::span(to.states[i]).subspan(begin, count)};
  }
  return arrays;
}

using Ranges = std::vector<ParameterRange>;

ParameterRange RangeOf(const Tensor& tensor) {
  return {tensor.offset, tensor.offset + tensor.size()};
}

/// Updates each tensor by a rule of its own, as param groups of PyTorch do; those of `absent` have
/// no gradient.
RuleVersion TensorByTensor(RuleKind kind, const RuleVersion& from, std::span<const float> gradient,
                           float rate, const RuleScalars& scalars, const Ranges& absent = {}) {
  RuleVersion to = from;
  for (const Tensor& tensor : Layout().tensors()) {
    const bool is_bias = tensor.name.ends_with("bias");
    const bool is_second = tensor.name.starts_with("1.");
    if (tensor.name.starts_with("2.") || std::ranges::count(absent, RangeOf(tensor)) > 0) continue;
    const auto rule = MakeUpdateRule(RuleSpec(kind, is_second ? 0.3 : is_bias ? 0 : 0.01));
    const UpdateArrays arrays = Arrays(kind, from, to, tensor.offset, tensor.size());
    const StepSize step = {.rate = is_second ? static_cast<float>(0.1 * rate) : rate};
    rule->Update(arrays, {.sum = gradient.subspan(tensor.offset, tensor.size())}, step, scalars,
                 Stores::kCached);
    if (RowOf(kind).measures_tensors) {
      rule->FinishTensor(arrays.weights_in, arrays.weights_out, step);
    }
  }
  return to;
}

/// Makes the update in ranges that end anywhere, each of a payload that is cut anywhere, into
/// values of the weights that hold the round's sum, if there is one.
RuleVersion InRanges(RuleKind kind, const RuleVersion& from, std::span<const float> gradient,
                     bool has_sum, float rate, const RuleScalars& scalars, RandomStream& random,
                     const Ranges& absent) {
  const TensorRules rules =
      TensorRules(SpecOf(kind), Layout(), {0, from.weights.size()}).Without(absent);
  const Stores stores = random.Below(2) == 0 ? Stores::kCached : Stores::kStreamed;
  RuleVersion to = from;
  for (size_t i = 0; i < RowOf(kind).state_arrays; ++i) {
    std::fill_n(to.states[i].begin(), Layout().Find("2.weight")->offset, 7.0f);
  }
  if (has_sum) std::ranges::copy(gradient, to.weights.begin());
  for (size_t begin = 0; begin < from.weights.size();) {
    const size_t count = std::min<size_t>(1 + random.Below(900), from.weights.size() - begin);
    const UpdateArrays arrays = Arrays(kind, from, to, begin, count);
    const auto range = gradient.subspan(begin, count);
    const CutPayload payload({range.begin(), range.end()}, random);
    CombinedGradient combined = {.sum = arrays.weights_out};
    if (!has_sum) combined = {.sum = {}, .last = &payload.segments()};
    rules.Update(begin, arrays, combined, {.rate = rate}, scalars, stores);
    begin += count;
  }
  if (RowOf(kind).measures_tensors) {
    for (const Tensor& tensor : Layout().tensors()) {
      const UpdateArrays arrays = Arrays(kind, from, to, tensor.offset, tensor.size());
      rules.FinishTensor(tensor.offset, arrays.weights_in, arrays.weights_out, {.rate = rate});
    }
  }
  return to;
}

TEST(TensorRulesTest, EachTensorWithAGradientTakesTheStepOfItsOwnOptionsWhereverTheUpdateIsCut) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    for (const RuleRow& row : kRuleRows) {
      SCOPED_TRACE(testing::Message() << row.name << ", seed " << seed);
      RandomStream random(seed, 21);
      const size_t count = Layout().parameters();
      const RuleVersion from = RandomVersion(count, random);
      const std::vector<float> gradient = RandomValues(count, random);
      const RuleScalars scalars = {0.7, 0.9};
      Ranges absent;
      for (const Tensor& tensor : Layout().tensors()) {
        if (random.Below(3) == 0) absent.push_back(RangeOf(tensor));
      }

      const RuleVersion made =
          InRanges(row.kind, from, gradient, seed % 2 == 0, 0.1f, scalars, random, absent);

      const RuleVersion wanted = TensorByTensor(row.kind, from, gradient, 0.1f, scalars, absent);
      ASSERT_EQ(made.weights, wanted.weights);
      ASSERT_EQ(made.states[0], wanted.states[0]);
      ASSERT_EQ(made.states[1], wanted.states[1]);
    }
  }
}

TEST(TensorRulesTest, AShardHasThePartsOfTensorsInItsRange) {
  const ParameterRange range = {650, 1500};
  RandomStream random(0, 22);
  const RuleVersion from = RandomVersion(Layout().parameters(), random);
  const std::vector<float> gradient = RandomValues(from.weights.size(), random);
  const auto within = [&](const std::vector<float>& values) {
    return std::vector<float>(values.begin() + range.begin, values.begin() + range.end);
  };

  const TensorRules rules(SpecOf(RuleKind::kSgd), Layout(), range);
  const RuleVersion part = {.weights = within(from.weights), .states = {}};
  RuleVersion to = part;
  const std::vector<float> gradient_part = within(gradient);
  rules.Update(0, Arrays(RuleKind::kSgd, part, to, 0, range.size()), {.sum = gradient_part},
               {.rate = 0.1f}, {}, Stores::kCached);

  EXPECT_EQ(to.weights, within(TensorByTensor(RuleKind::kSgd, from, gradient, 0.1f, {}).weights));
}

TEST(TensorRulesTest, WithoutOptionsThereIsOneRuleForAll) {
  OptimizerSpec spec = RuleSpec(RuleKind::kAdam, 0.01);
  EXPECT_EQ(TensorRules(spec, Layout(), {3, 1800}).spans().size(), 1u);

  spec.per_tensor = {{.match = "1.weight", .weight_decay = 0.01, .learning_rate_factor = 1}};
  EXPECT_EQ(TensorRules(spec, Layout(), {3, 1800}).spans().size(), 1u) << "says nothing new";
}

/// Arithmetic at the rate 0 would make 0 of −0 and of a subnormal number, and NaN of an infinite
/// gradient.
TEST(TensorRulesTest, NotABitOfAFrozenWeightChangesWhateverTheGradient) {
  constexpr float kHuge = std::numeric_limits<float>::infinity();
  const std::vector<float> weights = {-0.0f, 1e-42f, 1.5f, -3.0f};
  const std::vector<float> gradient = {-1.0f, 1.0f, kHuge, -kHuge};
  TensorLayout layout;
  ASSERT_TRUE(layout.Append("0.weight", {weights.size()}).ok());
  for (const RuleRow& row : kRuleRows) {
    for (const Stores stores : {Stores::kCached, Stores::kStreamed}) {
      SCOPED_TRACE(row.name);
      OptimizerSpec spec = RuleSpec(row.kind, 0.5);
      spec.per_tensor = {{.match = "*", .learning_rate_factor = 0}};
      const TensorRules rules(spec, layout, {0, weights.size()});
      const std::vector<float> zeros(weights.size());
      const RuleVersion from = {.weights = weights, .states = {zeros, zeros}};
      RuleVersion to = {.weights = gradient, .states = {zeros, zeros}};  // The sum is in its place.
      const UpdateArrays arrays = Arrays(row.kind, from, to, 0, weights.size());

      rules.Update(0, arrays, {.sum = to.weights}, {.rate = 0.1f},
                   rules.Next(rules.InitialScalars()), stores);
      if (row.measures_tensors) {
        rules.FinishTensor(0, arrays.weights_in, arrays.weights_out, {.rate = 0.1f});
      }

      EXPECT_EQ(std::memcmp(to.weights.data(), weights.data(), weights.size() * sizeof(float)), 0);
      EXPECT_EQ(to.states[0], zeros);
    }
  }
}

}  // namespace
}  // namespace slipstream
