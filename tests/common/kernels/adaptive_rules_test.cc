#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "common/base/philox.h"
#include "common/kernels/fold.h"
#include "common/kernels/rules/update_rule.h"
#include "tests/common/kernels/cut_payload.h"
#include "tests/common/kernels/rule_version.h"

namespace slipstream {
namespace {

using ::testing::FloatNear;
using ::testing::Pointwise;

/// Returns the weight of a single parameter, 0 at first, after one update by each gradient.
std::vector<float> PathOf(const OptimizerSpec& spec, float rate,
                          const std::vector<float>& gradients) {
  RandomStream random(0, 20);
  const std::unique_ptr<const UpdateRule> rule = MakeUpdateRule(spec);
  RuleVersion version = {{0.0f}, {{0.0f}, {0.0f}}};
  RuleScalars scalars = rule->InitialScalars();
  std::vector<float> path;
  for (const float gradient : gradients) {
    scalars = rule->Next(scalars);
    const CutPayload payload({gradient}, random);
    version = Updated(spec, version, {.last = &payload.segments()}, rate, scalars);
    path.push_back(version.weights[0]);
  }
  return path;
}

/// The figures are worked out by hand: 0.1 · 3/√9, and then 0.1 · 4/√25 more (Downpour's η =
/// γ/√ΣΔw², Dean et al., NIPS 2012).
TEST(AdaptiveRules, AdagradGivesTheFiguresOfDownpour) {
  EXPECT_THAT(PathOf(RuleSpec(RuleKind::kAdagrad), 0.1f, {3, 4}),
              Pointwise(FloatNear(1e-7f), {-0.1f, -0.18f}));
}

/// The figures are worked out by hand for g = 1, α = 1, β = 0.9 (arXiv 2401.09135).
TEST(AdaptiveRules, DelayedNesterovGivesThePublishedFigures) {
  OptimizerSpec spec = RuleSpec(RuleKind::kDelayedNesterov);
  spec.parameters["momentum_every"] = 3;
  EXPECT_THAT(
      PathOf(spec, 1.0f, {1, 1, 1, 1, 1, 1}),
      Pointwise(FloatNear(1e-5f), {-.333333f, -.666667f, -1.9f, -2.233333f, -2.566667f, -4.61f}));
}

TEST(AdaptiveRules, DelayedNesterovWithAPeriodOfOneIsNesterov) {
  OptimizerSpec spec = RuleSpec(RuleKind::kDelayedNesterov);
  spec.parameters["momentum_every"] = 1;
  const std::vector<float> gradients = {1, -2, 0.5f, 3, 0, 0, -1};
  EXPECT_THAT(PathOf(spec, 0.1f, gradients),
              Pointwise(FloatNear(1e-6f), PathOf(RuleSpec(RuleKind::kNesterov), 0.1f, gradients)));
}

TEST(AdaptiveRules, AdagradAndRmsPropEqualThePlainLoopToTheBit) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomStream random(seed, 21);
    const auto weights = RandomValues(1 + random.Below(300), random);
    auto squares = RandomValues(weights.size(), random);
    for (float& value : squares) value *= value;
    const auto gradient = RandomValues(weights.size(), random);
    const auto sum = RandomValues(weights.size(), random);
    const CutPayload payload(gradient, random);
    const bool has_sum = random.Below(2) == 0;
    const bool is_adagrad = random.Below(2) == 0;
    const OptimizerSpec spec = RuleSpec(is_adagrad ? RuleKind::kAdagrad : RuleKind::kRmsProp, 0.01);

    const RuleVersion next = Updated(spec, {weights, {squares}},
                                     {.sum = has_sum ? std::span(sum) : std::span<const float>(),
                                      .last = &payload.segments(),
                                      .last_weight = 0.75f,
                                      .inverse_divisor = 0.5f},
                                     0.1f);

    for (size_t i = 0; i < weights.size(); ++i) {
      const float total = has_sum ? sum[i] + 0.75f * gradient[i] : 0.75f * gradient[i];
      const float g = total * 0.5f + 0.01f * weights[i];
      const float state = is_adagrad ? squares[i] + g * g
                                     : 0.99f * squares[i] + static_cast<float>(1 - 0.99) * (g * g);
      ASSERT_EQ(next.states[0][i], state) << "at " << i;
      ASSERT_EQ(next.weights[i], weights[i] - 0.1f * g / (std::sqrt(state) + 1e-8f)) << "at " << i;
    }
  }
}

TEST(AdaptiveRules, DelayedNesterovEqualsThePlainLoopToTheBit) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomStream random(seed, 22);
    const auto weights = RandomValues(1 + random.Below(300), random);
    const auto momentum = RandomValues(weights.size(), random);
    const auto buffer = RandomValues(weights.size(), random);
    const auto sum = RandomValues(weights.size(), random);
    const bool advances = random.Below(2) == 0;
    const OptimizerSpec spec = RuleSpec(RuleKind::kDelayedNesterov, 0.01);

    const RuleVersion next =
        Updated(spec, {weights, {momentum, buffer}}, {.sum = sum, .inverse_divisor = 0.5f}, 0.1f,
                {advances ? 4.0 : 3.0, 0});

    for (size_t i = 0; i < weights.size(); ++i) {
      const float g = sum[i] * 0.5f + 0.01f * weights[i];
      const float all = buffer[i] + g;
      const float m = advances ? 0.9f * momentum[i] + 0.25f * all : momentum[i];
      const float share = weights[i] - 0.1f * 0.25f * g;
      ASSERT_EQ(next.states[0][i], m) << "at " << i;
      ASSERT_EQ(next.states[1][i], advances ? 0 : all) << "at " << i;
      ASSERT_EQ(next.weights[i], advances ? share - 0.1f * 0.9f * m : share) << "at " << i;
    }
  }
}

TEST(AdaptiveRules, StayFiniteWhateverTheGradient) {
  const std::vector<float> huge(8, std::numeric_limits<float>::max());
  for (const RuleKind kind : {RuleKind::kAdagrad, RuleKind::kRmsProp}) {
    const std::vector<float> path = PathOf(RuleSpec(kind), 0.1f, huge);
    EXPECT_TRUE(std::ranges::all_of(path, [](float weight) { return std::isfinite(weight); }))
        << RowOf(kind).name;
  }
}

/// Neither rule's step depends on the length of gradients, so that compensation by the mean
/// staleness has to scale the step itself.
TEST(AdaptiveRules, AStepScaleShortensTheStep) {
  RandomStream random(0, 23);
  const CutPayload payload({2.0f}, random);
  for (const RuleKind kind : {RuleKind::kAdagrad, RuleKind::kRmsProp}) {
    const auto step = [&](float scale) {
      std::vector<float> from = {0}, to = {0}, state_in = {1}, state_out = {0};
      UpdateArrays arrays = {.weights_in = from, .weights_out = to};
      arrays.states[0] = {state_in, state_out};
      MakeUpdateRule(RuleSpec(kind))
          ->Update(arrays, {.last = &payload.segments()}, {.rate = 0.1f, .scale = scale}, {},
                   Stores::kCached);
      return to[0];
    };
    EXPECT_FLOAT_EQ(step(0.25f), step(1) / 4) << RowOf(kind).name;
  }
}

}  // namespace
}  // namespace slipstream
