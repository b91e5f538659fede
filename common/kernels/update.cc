#include "common/kernels/update.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "common/base/check.h"
#include "common/kernels/float_runs.h"

namespace slipstream {
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

/// An array of the optimizer's state; null where the rule has none.
struct State {
  const float* in = nullptr;
  float* out = nullptr;
};

/// One stretch of an update's arrays, as a rule's loop gets it. By value, like the factors of a
/// rule: what is written might otherwise be one of them, and the loop would stay scalar.
struct Stretch {
  const float* weights_in;
  float* weights_out;
  std::array<State, 2> states;
  size_t count;

  /// Null where the round holds one gradient only. It may be weights_out; so may the gradient,
  /// where the sum is all of it.
  const float* sum = nullptr;
  const UnalignedFloat* gradient = nullptr;
  float weight = 1.0f;
  float inverse_divisor = 1.0f;
};

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

// Its square is a number in fp32.
constexpr float kAdamGradientMax = 1e19f;

template <bool kHasSum>
SLIPSTREAM_INLINE void AdamLoop(const Stretch s, const AdamFactors f) {
  const State means = s.states[0];
  const State squares = s.states[1];
  SLIPSTREAM_INDEPENDENT_PASSES
  for (size_t i = 0; i < s.count; ++i) {
    const float h = GradientAt<kHasSum>(s, i, f.decay);
    const float above = h > -kAdamGradientMax ? h : -kAdamGradientMax;
    const float g = above < kAdamGradientMax ? above : kAdamGradientMax;
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

/// `count` positions of `whole` from `position` on.
Stretch Part(const Stretch& whole, size_t position, size_t count) {
  Stretch part = whole;
  part.weights_in += position;
  part.weights_out += position;
  for (State& state : part.states) {
    if (state.in == nullptr) continue;
    state.in += position;
    state.out += position;
  }
  if (part.sum != nullptr) part.sum += position;
  if (part.gradient != nullptr) part.gradient += position;
  part.count = count;
  return part;
}

/// Pieces that stay in the first cache, with what is made of them.
constexpr size_t kPieceValues = 1024;

/// Calls run(piece) so that it makes its values in the cache, and streams them out.
template <typename Run>
void RunStreamed(Stretch piece, bool streams_weights, Run run) {
  alignas(64) float weights[kPieceValues];
  alignas(64) float states[2][kPieceValues];
  float* const weights_out = piece.weights_out;
  const std::array<State, 2> states_out = piece.states;
  if (streams_weights) piece.weights_out = weights;
  for (size_t i = 0; i < piece.states.size(); ++i) {
    if (piece.states[i].out != nullptr) piece.states[i].out = states[i];
  }
  run(piece);
  if (streams_weights) StreamValues(weights, weights_out, piece.count);
  for (size_t i = 0; i < states_out.size(); ++i) {
    if (states_out[i].out != nullptr) StreamValues(states[i], states_out[i].out, piece.count);
  }
}

/// Calls run(stretch) for stretches of `whole`.
template <typename Run>
void RunStretch(const Stretch& whole, Stores stores, Run run) {
  if (stores == Stores::kCached) return run(whole);
  // Lines of a sum are in the cache because it was read, so there is nothing to save.
  const bool streams_weights =
      whole.weights_out != (whole.sum != nullptr ? whole.sum : whole.gradient);
  // Pieces end where a line ends: one that is written in parts costs as much as several.
  const size_t past = reinterpret_cast<uintptr_t>(whole.weights_out) / sizeof(float) % kLineValues;
  for (size_t begin = 0, end = kPieceValues - past; begin < whole.count;
       begin = end, end += kPieceValues) {
    RunStreamed(Part(whole, begin, std::min(end, whole.count) - begin), streams_weights, run);
  }
}

/// Calls run(stretch) for all of `whole`.
template <typename Run>
void ForEachStretch(Stretch whole, const CombinedGradient& gradient, Stores stores, Run run) {
  PS_CHECK(gradient.last != nullptr || gradient.sum.size() == whole.count);
  PS_CHECK(gradient.last == nullptr || TotalBytes(*gradient.last) == whole.count * sizeof(float));
  PS_CHECK(gradient.sum.empty() || gradient.sum.size() == whole.count);
  whole.inverse_divisor = gradient.inverse_divisor;
  if (gradient.last == nullptr) {
    whole.gradient = gradient.sum.data();  // A sum alone is the gradient.
    RunStretch(whole, stores, run);
  } else {
    if (!gradient.sum.empty()) whole.sum = gradient.sum.data();
    whole.weight = gradient.last_weight;
    ForEachFloatRun(*gradient.last,
                    [&](size_t position, const UnalignedFloat* values, size_t count) {
                      Stretch stretch = Part(whole, position, count);
                      stretch.gradient = values;
                      RunStretch(stretch, stores, run);
                    });
  }
  if (stores == Stores::kStreamed) FinishStreaming();
}

/// The arrays of an update, without its gradient.
Stretch Whole(std::span<const float> weights_in, std::span<float> weights_out,
              std::array<State, 2> states = {}) {
  PS_CHECK(weights_in.size() == weights_out.size());
  return {weights_in.data(), weights_out.data(), states, weights_in.size()};
}

State StateOf(std::span<const float> in, std::span<float> out, size_t values) {
  PS_CHECK(in.size() == values && out.size() == values);
  return {in.data(), out.data()};
}

}  // namespace

void FoldGradient(std::span<float> sum, const Segments& gradient, float weight, bool first) {
  PS_CHECK(TotalBytes(gradient) == sum.size_bytes());
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
