#include "common/kernels/update.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "common/base/check.h"
#include "common/kernels/float_runs.h"
#include "common/kernels/flushed_subnormals.h"
#include "common/kernels/update_stretches.h"

namespace slipstream {

using namespace update_stretches;

namespace {

SLIPSTREAM_CPU_DISPATCH
void AssignRun(float* __restrict sum, const UnalignedFloat* __restrict gradient, size_t count,
               float weight) {
  for (size_t i = 0; i < count; ++i) sum[i] = weight * gradient[i];
}

SLIPSTREAM_CPU_DISPATCH
void AddRun(float* __restrict sum, const UnalignedFloat* __restrict gradient, size_t count,
            float weight) {
  for (size_t i = 0; i < count; ++i) sum[i] += weight * gradient[i];
}

/// Of what is compiled as part of a function for several instruction sets.
#define SLIPSTREAM_INLINE __attribute__((always_inline)) inline

/// The combined gradient and a decay's part at position i.
template <bool kHasSum>
SLIPSTREAM_INLINE float GradientAt(const Stretch& s, size_t i, float decay) {
  const float last = s.weight * s.gradient[i];
  const float g = kHasSum ? s.sum[i] + last : last;
  return g * s.inverse_divisor + decay * s.weights_in[i];
}

// Each position is read before it is written, and no pass reads what another has written.

template <bool kHasSum>
SLIPSTREAM_INLINE void SgdLoop(const Stretch s, float rate, float decay) {
  SLIPSTREAM_INDEPENDENT_PASSES
  for (size_t i = 0; i < s.count; ++i) {
    s.weights_out[i] = s.weights_in[i] - rate * GradientAt<kHasSum>(s, i, decay);
  }
}

template <bool kHasSum>
SLIPSTREAM_INLINE void MomentumLoop(const Stretch s, float rate, float momentum, float decay) {
  const State state = s.states[0];
  SLIPSTREAM_INDEPENDENT_PASSES
  for (size_t i = 0; i < s.count; ++i) {
    const float velocity = momentum * state.in[i] + GradientAt<kHasSum>(s, i, decay);
    state.out[i] = velocity;
    s.weights_out[i] = s.weights_in[i] - rate * velocity;
  }
}

/// The number nearest to `value` from −10¹⁹ to 10¹⁹, whose squares are numbers in fp32. By its
/// bits: comparisons of floats, whose order with a NaN is to be kept, make three choices of one.
SLIPSTREAM_INLINE float WithFiniteSquare(float value) {
  constexpr auto kMax = std::bit_cast<int32_t>(1e19f);
  const auto bits = std::bit_cast<int32_t>(value);
  return std::bit_cast<float>(std::min(bits & 0x7fffffff, kMax) | (bits & ~0x7fffffff));
}

template <bool kHasSum>
SLIPSTREAM_INLINE void AdamLoop(const Stretch s, const AdamFactors f) {
  const State means = s.states[0];
  const State squares = s.states[1];
  SLIPSTREAM_INDEPENDENT_PASSES
  for (size_t i = 0; i < s.count; ++i) {
    const float g = WithFiniteSquare(GradientAt<kHasSum>(s, i, f.decay));
    const float mean = f.beta1 * means.in[i] + f.one_minus_beta1 * g;
    const float square = f.beta2 * squares.in[i] + f.one_minus_beta2 * (g * g);
    means.out[i] = mean;
    squares.out[i] = square;
    const float root = std::sqrt(square) * f.root_scale + f.epsilon;
    s.weights_out[i] = f.kept * s.weights_in[i] - f.rate * mean / root;
  }
}

SLIPSTREAM_CPU_DISPATCH
void SgdSingle(Stretch s, float rate, float decay) { SgdLoop<false>(s, rate, decay); }

SLIPSTREAM_CPU_DISPATCH
void SgdSum(Stretch s, float rate, float decay) { SgdLoop<true>(s, rate, decay); }

SLIPSTREAM_CPU_DISPATCH
void MomentumSingle(Stretch s, float rate, float momentum, float decay) {
  MomentumLoop<false>(s, rate, momentum, decay);
}

SLIPSTREAM_CPU_DISPATCH
void MomentumSum(Stretch s, float rate, float momentum, float decay) {
  MomentumLoop<true>(s, rate, momentum, decay);
}

SLIPSTREAM_CPU_DISPATCH
void AdamSingle(Stretch s, AdamFactors f) { AdamLoop<false>(s, f); }

SLIPSTREAM_CPU_DISPATCH
void AdamSum(Stretch s, AdamFactors f) { AdamLoop<true>(s, f); }

}  // namespace

void FoldGradient(std::span<float> sum, const Segments& gradient, float weight, bool first) {
  PS_CHECK(TotalBytes(gradient) == sum.size_bytes());
  const FlushedSubnormals flushed;
  ForEachFloatRun(gradient, [&](size_t position, const UnalignedFloat* values, size_t count) {
    if (first) {
      AssignRun(sum.data() + position, values, count, weight);
    } else {
      AddRun(sum.data() + position, values, count, weight);
    }
  });
}

void SgdUpdate(std::span<const float> weights_in, std::span<float> weights_out,
               const CombinedGradient& gradient, float rate, float decay, Stores stores) {
  ForEachStretch(Whole(weights_in, weights_out), gradient, stores, [=](const Stretch& s) {
    s.sum == nullptr ? SgdSingle(s, rate, decay) : SgdSum(s, rate, decay);
  });
}

void MomentumUpdate(std::span<const float> weights_in, std::span<float> weights_out,
                    std::span<const float> velocity_in, std::span<float> velocity_out,
                    const CombinedGradient& gradient, float rate, float momentum, float decay,
                    Stores stores) {
  const State velocity = StateOf(velocity_in, velocity_out, weights_in.size());
  ForEachStretch(Whole(weights_in, weights_out, {velocity}), gradient, stores,
                 [=](const Stretch& s) {
                   s.sum == nullptr ? MomentumSingle(s, rate, momentum, decay)
                                    : MomentumSum(s, rate, momentum, decay);
                 });
}

AdamFactors FactorsOfAdam(const AdamRule& rule, const AdamPowers& powers, double rate,
                          double step_scale) {
  PS_CHECK(powers.beta1 < 1 && powers.beta2 < 1);
  return {.rate = static_cast<float>(step_scale * rate / (1 - powers.beta1)),
          .root_scale = static_cast<float>(1 / std::sqrt(1 - powers.beta2)),
          .beta1 = static_cast<float>(rule.beta1),
          .one_minus_beta1 = static_cast<float>(1 - rule.beta1),
          .beta2 = static_cast<float>(rule.beta2),
          .one_minus_beta2 = static_cast<float>(1 - rule.beta2),
          .epsilon = static_cast<float>(rule.epsilon),
          .decay = rule.is_decoupled ? 0.0f : static_cast<float>(rule.decay),
          .kept = rule.is_decoupled ? static_cast<float>(1 - rate * rule.decay) : 1.0f};
}

void AdamUpdate(std::span<const float> weights_in, std::span<float> weights_out,
                const AdamMoments& moments, const CombinedGradient& gradient,
                const AdamFactors& factors, Stores stores) {
  const State mean = StateOf(moments.mean_in, moments.mean_out, weights_in.size());
  const State square = StateOf(moments.square_in, moments.square_out, weights_in.size());
  ForEachStretch(Whole(weights_in, weights_out, {mean, square}), gradient, stores,
                 [factors](const Stretch& s) {
                   s.sum == nullptr ? AdamSingle(s, factors) : AdamSum(s, factors);
                 });
}

}  // namespace slipstream
