#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "common/base/philox.h"
#include "common/kernels/fold.h"
#include "common/kernels/rules/adam.h"
#include "common/kernels/rules/update_rule.h"
#include "common/kernels/squares.h"
#include "tests/common/kernels/cut_payload.h"
#include "tests/common/kernels/rule_version.h"

namespace slipstream {
namespace {

using ::testing::FloatNear;
using ::testing::Pointwise;

TEST(UpdateRules, SgdEqualsThePlainLoopToTheBit) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomStream random(seed, 1);
    const auto weights = RandomValues(1 + random.Below(300), random);
    const auto gradient = RandomValues(weights.size(), random);
    const auto sum = RandomValues(weights.size(), random);
    const CutPayload payload(gradient, random);
    const bool has_sum = random.Below(2) == 0;
    const CombinedGradient combined = {.sum = has_sum ? std::span(sum) : std::span<const float>(),
                                       .last = &payload.segments(),
                                       .last_weight = 0.75f,
                                       .inverse_divisor = 1.0f / 3.0f};

    const std::vector<float> updated =
        Updated(RuleSpec(RuleKind::kSgd, 0.01), {weights}, combined, 0.1f).weights;

    for (size_t i = 0; i < weights.size(); ++i) {
      const float total = has_sum ? sum[i] + 0.75f * gradient[i] : 0.75f * gradient[i];
      const float g = total * (1.0f / 3.0f) + 0.01f * weights[i];
      ASSERT_EQ(updated[i], weights[i] - 0.1f * g) << "at " << i;
    }
  }
}

TEST(UpdateRules, MomentumEqualsThePlainLoopToTheBit) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomStream random(seed, 2);
    const auto weights = RandomValues(1 + random.Below(300), random);
    const auto velocity = RandomValues(weights.size(), random);
    const auto sum = RandomValues(weights.size(), random);
    const CombinedGradient combined = {.sum = sum, .inverse_divisor = 0.25f};

    const RuleVersion next =
        Updated(RuleSpec(RuleKind::kMomentum), {weights, {velocity}}, combined, 0.1f);

    for (size_t i = 0; i < weights.size(); ++i) {
      const float v = 0.9f * velocity[i] + (sum[i] * 0.25f + 0.0f * weights[i]);
      ASSERT_EQ(next.states[0][i], v) << "at " << i;
      ASSERT_EQ(next.weights[i], weights[i] - 0.1f * v) << "at " << i;
    }
  }
}

TEST(UpdateRules, NesterovEqualsThePlainLoopToTheBit) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomStream random(seed, 12);
    const auto weights = RandomValues(1 + random.Below(300), random);
    const auto velocity = RandomValues(weights.size(), random);
    const auto sum = RandomValues(weights.size(), random);
    const CombinedGradient combined = {.sum = sum, .inverse_divisor = 0.25f};

    const RuleVersion next =
        Updated(RuleSpec(RuleKind::kNesterov, 0.01), {weights, {velocity}}, combined, 0.1f);

    for (size_t i = 0; i < weights.size(); ++i) {
      const float g = sum[i] * 0.25f + 0.01f * weights[i];
      const float v = 0.9f * velocity[i] + g;
      ASSERT_EQ(next.states[0][i], v) << "at " << i;
      ASSERT_EQ(next.weights[i], weights[i] - 0.1f * (g + 0.9f * v)) << "at " << i;
    }
  }
}

/// The figures are worked out by hand for g = 1, α = 1, m = 0.9. This is the case N = 1 of delayed
/// Nesterov (arXiv 2401.09135).
TEST(UpdateRules, NesterovGivesThePublishedFigures) {
  RandomStream random(0, 13);
  const CutPayload one({1.0f}, random);
  RuleVersion version = {{0.0f}, {{0.0f}}};
  for (const float expected : {-1.9f, -4.61f, -8.049f}) {
    version = Updated(RuleSpec(RuleKind::kNesterov), version, {.last = &one.segments()}, 1.0f);
    EXPECT_FLOAT_EQ(version.weights[0], expected);
  }
}

TEST(UpdateRules, AdamEqualsThePlainLoopToTheBit) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomStream random(seed, 8);
    const auto weights = RandomValues(1 + random.Below(300), random);
    const auto mean = RandomValues(weights.size(), random);
    auto square = RandomValues(weights.size(), random);
    for (float& value : square) value *= value;
    const auto gradient = RandomValues(weights.size(), random);
    const auto sum = RandomValues(weights.size(), random);
    const CutPayload payload(gradient, random);
    const bool has_sum = random.Below(2) == 0;
    const OptimizerSpec spec =
        RuleSpec(random.Below(2) == 0 ? RuleKind::kAdamW : RuleKind::kAdam, 0.02);
    const RuleScalars powers = {0.5, 0.75};
    const AdamFactors f = FactorsOfAdam(spec, powers, {.rate = 0.01f});

    const RuleVersion next = Updated(spec, {weights, {mean, square}},
                                     {.sum = has_sum ? std::span(sum) : std::span<const float>(),
                                      .last = &payload.segments(),
                                      .last_weight = 0.75f,
                                      .inverse_divisor = 0.5f},
                                     0.01f, powers);

    for (size_t i = 0; i < weights.size(); ++i) {
      const float total = has_sum ? sum[i] + 0.75f * gradient[i] : 0.75f * gradient[i];
      const float g = total * 0.5f + f.decay * weights[i];
      const float m = f.beta1 * mean[i] + f.one_minus_beta1 * g;
      const float s = f.beta2 * square[i] + f.one_minus_beta2 * (g * g);
      ASSERT_EQ(next.states[0][i], m) << "at " << i;
      ASSERT_EQ(next.states[1][i], s) << "at " << i;
      const float step = f.rate * m / (std::sqrt(s) * f.root_scale + f.epsilon);
      ASSERT_EQ(next.weights[i], f.kept * weights[i] - step) << "at " << i;
    }
  }
}

/// The figures are from torch.optim.Adam and AdamW of PyTorch 1.13 in float64: lr 0.1, weight_decay
/// 0.01.
TEST(UpdateRules, AdamTakesTheStepsOfPyTorch) {
  const std::vector<float> gradients[] = {{0.5f, -1.0f}, {-0.25f, 3.0f}, {2.0f, 0.0f}};
  const float adam[][2] = {{0.9000000019607843f, -1.9000000009803921f},
                           {0.8712293476231743f, -1.9487271496806455f},
                           {0.8037152171510447f, -1.98599733163793f}};
  const float adamw[][2] = {{0.899000002f, -1.898000001f},
                            {0.8714672987058463f, -1.945520984107744f},
                            {0.8035310672284472f, -1.981776480259877f}};
  for (const bool is_decoupled : {false, true}) {
    RandomStream random(0, 9);
    RuleVersion version = {{1.0f, -2.0f}, {{0, 0}, {0, 0}}};
    const OptimizerSpec spec = RuleSpec(is_decoupled ? RuleKind::kAdamW : RuleKind::kAdam, 0.01);
    RuleScalars powers = MakeUpdateRule(spec)->InitialScalars();
    for (size_t t = 0; t < 3; ++t) {
      powers = MakeUpdateRule(spec)->Next(powers);
      const CutPayload payload(gradients[t], random);
      version = Updated(spec, version, {.last = &payload.segments()}, 0.1f, powers);
      for (size_t i = 0; i < 2; ++i) {
        EXPECT_NEAR(version.weights[i], (is_decoupled ? adamw : adam)[t][i], 1e-6)
            << "step " << t + 1 << ", value " << i << (is_decoupled ? ", adamw" : ", adam");
      }
    }
  }
}

/// The figures are worked out by hand. The first step of Adam is 1 per value, whatever the
/// gradient. A tensor with the values 1, 1, 10 and 10 has the ratio √202 / √4; cut in two, it would
/// have the ratios 1 and 10.
TEST(UpdateRules, LambMakesStepsAsLongAsAShareOfEachTensor) {
  const OptimizerSpec spec = RuleSpec(RuleKind::kLamb);
  const std::unique_ptr<const UpdateRule> rule = MakeUpdateRule(spec);
  RandomStream random(0, 15);
  const CutPayload gradient({1, 2, 3, 4}, random);
  const RuleVersion from = {{1, 1, 10, 10}, {{0, 0, 0, 0}, {0, 0, 0, 0}}};
  const RuleScalars powers = rule->Next(rule->InitialScalars());
  const auto stepped = [&](size_t first_tensor) {
    RuleVersion to = Updated(spec, from, {.last = &gradient.segments()}, 0.1f, powers);
    const auto finish = [&](size_t begin, size_t count) {
      rule->FinishTensor(std::span(from.weights).subspan(begin, count),
                         std::span(to.weights).subspan(begin, count), {.rate = 0.1f});
    };
    finish(0, first_tensor);
    finish(first_tensor, 4 - first_tensor);
    return to.weights;
  };

  const float whole = 0.1f * std::sqrt(202.0f) / 2;
  EXPECT_THAT(stepped(4),
              Pointwise(FloatNear(1e-5f), {1 - whole, 1 - whole, 10 - whole, 10 - whole}));
  EXPECT_THAT(stepped(2), Pointwise(FloatNear(1e-5f), {0.9f, 0.9f, 9.0f, 9.0f}));
}

TEST(UpdateRules, LambEqualsThePlainLoopToTheBit) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomStream random(seed, 16);
    const auto weights = RandomValues(1 + random.Below(3000), random);
    const auto mean = RandomValues(weights.size(), random);
    auto square = RandomValues(weights.size(), random);
    for (float& value : square) value *= value;
    const auto sum = RandomValues(weights.size(), random);
    const OptimizerSpec spec = RuleSpec(RuleKind::kLamb, 0.02);
    const RuleScalars powers = {0.5, 0.75};
    const AdamFactors f = FactorsOfAdam(spec, powers, {.rate = 1});
    const StepSize step = {.rate = 0.01f, .scale = 0.5f};

    RuleVersion next = Updated(spec, {weights, {mean, square}},
                               {.sum = sum, .inverse_divisor = 0.5f}, step.rate, powers);
    MakeUpdateRule(spec)->FinishTensor(weights, next.weights, step);

    std::vector<float> steps;
    for (size_t i = 0; i < weights.size(); ++i) {
      const float g = sum[i] * 0.5f + 0.0f * weights[i];
      const float m = f.beta1 * mean[i] + f.one_minus_beta1 * g;
      const float s = f.beta2 * square[i] + f.one_minus_beta2 * (g * g);
      steps.push_back(f.rate * m / (std::sqrt(s) * f.root_scale + f.epsilon) + 0.02f * weights[i]);
    }
    const double ratio = std::sqrt(SumOfSquares(weights) / SumOfSquares(steps));
    const auto rate = static_cast<float>(ratio * step.scale * step.rate);
    for (size_t i = 0; i < weights.size(); ++i) {
      ASSERT_EQ(next.weights[i], weights[i] - rate * steps[i]) << "at " << i;
    }
  }
}

/// The ratio counts as 1 if a norm is 0: biases begin at 0 and must be able to move.
TEST(UpdateRules, LambMovesATensorOfZerosAndLeavesOneWithoutGradient) {
  const OptimizerSpec spec = RuleSpec(RuleKind::kLamb);
  std::vector<float> zeros_step = {1.0f, -1.0f};
  MakeUpdateRule(spec)->FinishTensor(std::vector<float>{0, 0}, zeros_step, {.rate = 0.1f});
  EXPECT_EQ(zeros_step, (std::vector<float>{-0.1f, 0.1f}));

  std::vector<float> no_step = {0.0f, 0.0f};
  MakeUpdateRule(spec)->FinishTensor(std::vector<float>{3, 4}, no_step, {.rate = 0.1f});
  EXPECT_EQ(no_step, (std::vector<float>{3, 4}));
}

/// If the gradient has long been 0, the rest of the step is too small for any ratio to restore.
TEST(UpdateRules, LambKeepsTheWeightsOfATensorThatGetsNoGradientAnyMore) {
  const OptimizerSpec spec = RuleSpec(RuleKind::kLamb);
  const std::vector<float> weights(1000, 1e4f);
  for (const float rest : {1e-30f, 1e-37f, 1.2e-38f, 1e-40f}) {
    std::vector<float> step(weights.size());
    step[3] = rest;

    MakeUpdateRule(spec)->FinishTensor(weights, step, {.rate = 0.05f});

    EXPECT_EQ(step, weights) << rest;
  }
}

TEST(UpdateRules, AdamStaysFiniteWhateverTheGradient) {
  RandomStream random(0, 10);
  OptimizerSpec spec = RuleSpec(RuleKind::kAdam);
  spec.parameters["beta1"] = 0;
  spec.parameters["beta2"] = 0;
  const CutPayload huge({3e38f, -3e38f, 0.0f}, random);
  RuleVersion version = {{1.0f, 1.0f, 1.0f}, {{0, 0, 0}, {0, 0, 0}}};
  for (int t = 0; t < 3; ++t) {
    version = Updated(spec, version, {.last = &huge.segments()}, 0.1f);
  }

  EXPECT_NEAR(version.weights[0], 0.7f, 1e-5);  // The length of a step is the rate.
  EXPECT_NEAR(version.weights[1], 1.3f, 1e-5);
  EXPECT_EQ(version.weights[2], 1.0f);
}

/// Subnormals are flushed only inside the kernels; later computations of the thread are not
/// affected.
TEST(UpdateRules, SubnormalNumbersCountAsZero) {
  constexpr float kSubnormal = 1e-39f;
  RandomStream random(0, 11);
  const CutPayload tiny({kSubnormal, kSubnormal}, random);
  const CutPayload none({0.0f, 0.0f}, random);
  const std::vector<float> weights = {1.0f, 1.0f};
  std::vector<float> sum = {0.0f, 0.0f};

  FoldGradient(sum, tiny.segments(), 4096.0f, true);
  EXPECT_EQ(sum[0], 0.0f);
  const RuleVersion slowed =
      Updated(RuleSpec(RuleKind::kMomentum), {weights, {{kSubnormal, 0x1p-126f}}},
              {.last = &none.segments()}, 1.0f);
  EXPECT_EQ(slowed.states[0], std::vector<float>(2, 0.0f));
  const RuleVersion next = Updated(RuleSpec(RuleKind::kSgd), {weights},
                                   {.last = &tiny.segments(), .last_weight = 0x1p126f}, 1.0f);
  EXPECT_EQ(next.weights, weights);

  volatile float mine = kSubnormal;
  mine = mine * 0.5f;
  EXPECT_GT(mine, 0.0f);
}

TEST(UpdateRules, AStepScaleShortensAdamsStepAndNotItsDecay) {
  const OptimizerSpec spec = RuleSpec(RuleKind::kAdamW, 0.5);
  const RuleScalars first = {0.9, 0.999};

  const AdamFactors whole = FactorsOfAdam(spec, first, {.rate = 0.1f});
  const AdamFactors quarter = FactorsOfAdam(spec, first, {.rate = 0.1f, .scale = 0.25f});

  EXPECT_EQ(quarter.rate, whole.rate / 4);
  EXPECT_EQ(quarter.kept, whole.kept);
  EXPECT_EQ(quarter.kept, 0.95f);
}

TEST(UpdateRules, TakeDecaysOfOneAndMore) {
  const OptimizerSpec whole = RuleSpec(RuleKind::kSgd, 1.0);
  RandomStream random(0, 3);
  const CutPayload one({1.0f}, random);

  // 3 − 0.25 (1 + 1 · 3).
  EXPECT_EQ(Updated(whole, {{3.0f}}, {.last = &one.segments(), .last_weight = 1.0f}, 0.25f).weights,
            (std::vector<float>{2.0f}));
  OptimizerSpec most = RuleSpec(RuleKind::kAdamW, kWeightDecayMax);
  EXPECT_EQ(FactorsOfAdam(most, {0.9, 0.999}, {.rate = 1e30f}).kept, -1e30f);
}

/// The figures are worked out by hand: g = 1, α₀ = 1, σ = 0, 1, 2 in turn under per_gradient.
TEST(UpdateRules, GiveTheFiguresOfPerGradientScaling) {
  RandomStream random(0, 3);
  std::vector<float> theta = {0.0f};
  const CutPayload one({1.0f}, random);
  std::vector<float> path;

  for (const float scale : {1.0f, 1.0f, 0.5f}) {
    theta = Updated(RuleSpec(RuleKind::kSgd), {theta},
                    {.last = &one.segments(), .last_weight = scale}, 1.0f)
                .weights;
    path.push_back(theta[0]);
  }

  EXPECT_EQ(path, (std::vector<float>{-1.0f, -2.0f, -2.5f}));
}

TEST(UpdateRules, ASumInTheWeightsToBeWrittenAndStreamedStoresGiveTheSameBits) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomStream random(seed, 3);
    // The size is up to a few of the pieces that are streamed.
    const auto weights = RandomValues(1 + random.Below(5000), random);
    auto other_square = RandomValues(weights.size(), random);
    for (float& value : other_square) value *= value;
    const auto gradient = RandomValues(weights.size(), random);
    const auto sum = RandomValues(weights.size(), random);
    const CutPayload payload(gradient, random);
    CombinedGradient combined = {.sum = sum, .last_weight = 0.5f, .inverse_divisor = 1.0f / 3.0f};
    if (random.Below(3) > 0) combined.last = &payload.segments();
    auto square = RandomValues(weights.size(), random);
    for (float& value : square) value *= value;
    const RuleRow& row = kRuleRows[random.Below(kRuleRows.size())];
    const auto update = [&](std::vector<float>& out, Stores stores) {
      std::vector<float> state(weights.size());
      std::vector<float> second(weights.size());
      UpdateArrays arrays = {.weights_in = weights, .weights_out = out};
      // Some rules take the root of their first array, and some that of their second.
      if (row.state_arrays > 0) arrays.states[0] = {other_square, state};
      if (row.state_arrays > 1) arrays.states[1] = {square, second};
      MakeUpdateRule(RuleSpec(row.kind, 0.01))
          ->Update(arrays, combined, {.rate = 0.1f}, {0.7, 0.9}, stores);
      return std::pair(state, second);
    };
    std::vector<float> apart(weights.size());
    const auto state_apart = update(apart, Stores::kCached);

    std::vector<float> streamed(weights.size());
    EXPECT_EQ(update(streamed, Stores::kStreamed), state_apart);
    ASSERT_EQ(streamed, apart);

    for (const Stores stores : {Stores::kCached, Stores::kStreamed}) {
      std::vector<float> in_place = sum;
      combined.sum = in_place;
      EXPECT_EQ(update(in_place, stores), state_apart);
      ASSERT_EQ(in_place, apart);
    }
  }
}

}  // namespace
}  // namespace slipstream
