#ifndef SLIPSTREAM_COMMON_KERNELS_RULES_UPDATE_STRETCHES_H_
#define SLIPSTREAM_COMMON_KERNELS_RULES_UPDATE_STRETCHES_H_

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "common/base/check.h"
#include "common/kernels/float_runs.h"
#include "common/kernels/flushed_subnormals.h"
#include "common/kernels/fold.h"
#include "common/kernels/rules/update_rule.h"
#include "common/kernels/segments.h"
#include "common/kernels/streamed_stores.h"

/// The loops of rules run over stretches of an update's arrays. A stretch is as long as a piece of
/// the gradient, or so short that its results are made in the cache and streamed out of it.

namespace slipstream::update_stretches {

/// An array of the optimizer's state; null where the rule has none.
struct State {
  const float* in = nullptr;
  float* out = nullptr;
};

/// One stretch of an update's arrays, as a rule's loop gets it. It is passed by value, like the
/// factors of a rule: otherwise a write might change one of them, and the loop would stay scalar.
struct Stretch {
  const float* weights_in;
  float* weights_out;
  std::array<State, kStateArraysMax> states;
  size_t count;

  /// Null if the round holds one gradient only. It may be weights_out; so may the gradient, if the
  /// round is a sum alone.
  const float* sum = nullptr;
  const UnalignedFloat* gradient = nullptr;
  float weight = 1.0f;
  float inverse_divisor = 1.0f;
};

/// Returns the combined gradient plus the part of the decay at position i.
template <bool kHasSum>
SLIPSTREAM_INLINE float GradientAt(const Stretch& s, size_t i, float decay) {
  const float last = s.weight * s.gradient[i];
  const float g = kHasSum ? s.sum[i] + last : last;
  return g * s.inverse_divisor + decay * s.weights_in[i];
}

/// Returns the number nearest to `value` from −10¹⁹ to 10¹⁹, whose squares are finite in fp32. It
/// compares bits: comparisons of floats must keep their order with a NaN, and would need three
/// selections instead of one.
SLIPSTREAM_INLINE float WithFiniteSquare(float value) {
  constexpr auto kMax = std::bit_cast<int32_t>(1e19f);
  const auto bits = std::bit_cast<int32_t>(value);
  return std::bit_cast<float>(std::min(bits & 0x7fffffff, kMax) | (bits & ~0x7fffffff));
}

/// Returns `count` positions of `whole` from `position` on.
inline Stretch Part(const Stretch& whole, size_t position, size_t count) {
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

/// The size of pieces that stay in the first-level cache, together with their results and the
/// inputs of the next piece. With twice as many values, Adam's pieces do not, and Adam loses what
/// fetching ahead gains.
inline constexpr size_t kPieceValues = 512;

/// Makes the processor fetch `count` values, from any address.
inline void FetchAhead(const void* from, size_t count) {
  const auto* const bytes = static_cast<const std::byte*>(from);
  for (size_t at = 0; at < count * sizeof(float); at += kLineValues * sizeof(float)) {
    __builtin_prefetch(bytes + at);
  }
}

/// Calls run(piece) so that it makes its values in the cache, and streams them out. Nothing would
/// be read during that, so the inputs of `next` are fetched: measured on Zen 4 at 64 MiB, momentum
/// takes 0.80 times as long, Adam 0.89. Where a sum lies in the place of the weights, fetching
/// costs time and is left out.
template <typename Run>
void RunStreamed(Stretch piece, const Stretch& next, bool streams_weights, Run run) {
  alignas(64) float weights[kPieceValues];
  alignas(64) float states[kStateArraysMax][kPieceValues];
  float* const weights_out = piece.weights_out;
  const std::array<State, kStateArraysMax> states_out = piece.states;
  if (streams_weights) piece.weights_out = weights;
  for (size_t i = 0; i < piece.states.size(); ++i) {
    if (piece.states[i].out != nullptr) piece.states[i].out = states[i];
  }
  run(piece);
  if (streams_weights) {
    FetchAhead(next.gradient, next.count);
    FetchAhead(next.weights_in, next.count);
    StreamValues(weights, weights_out, piece.count);
  }
  for (size_t i = 0; i < states_out.size(); ++i) {
    if (states_out[i].out == nullptr) continue;
    if (streams_weights) FetchAhead(next.states[i].in, next.count);
    StreamValues(states[i], states_out[i].out, piece.count);
  }
}

/// Calls run(stretch) for stretches of `whole`.
template <typename Run>
void RunStretch(const Stretch& whole, Stores stores, Run run) {
  if (stores == Stores::kCached) return run(whole);
  // The lines of a sum are in the cache because it was read, so streaming would save nothing.
  const bool streams_weights =
      whole.weights_out != (whole.sum != nullptr ? whole.sum : whole.gradient);
  // Pieces end where a line ends: a line that is written in parts costs as much as several.
  const size_t past = reinterpret_cast<uintptr_t>(whole.weights_out) / sizeof(float) % kLineValues;
  for (size_t begin = 0, end = kPieceValues - past; begin < whole.count;
       begin = end, end += kPieceValues) {
    const size_t piece_end = std::min(end, whole.count);
    const Stretch next = Part(whole, piece_end, std::min(kPieceValues, whole.count - piece_end));
    RunStreamed(Part(whole, begin, piece_end - begin), next, streams_weights, run);
  }
}

/// Returns the arrays of an update, without its gradient.
inline Stretch Whole(const UpdateArrays& arrays, size_t states) {
  const size_t count = arrays.weights_in.size();
  PS_CHECK(arrays.weights_out.size() == count);
  Stretch whole = {arrays.weights_in.data(), arrays.weights_out.data(), {}, count};
  for (size_t i = 0; i < states; ++i) {
    PS_CHECK(arrays.states[i].in.size() == count && arrays.states[i].out.size() == count);
    whole.states[i] = {arrays.states[i].in.data(), arrays.states[i].out.data()};
  }
  return whole;
}

/// Calls run(stretch) for all of the arrays, for a rule with `states` state arrays.
template <typename Run>
void ForEachStretch(const UpdateArrays& arrays, size_t states, const CombinedGradient& gradient,
                    Stores stores, Run run) {
  Stretch whole = Whole(arrays, states);
  PS_CHECK(gradient.last != nullptr || gradient.sum.size() == whole.count);
  PS_CHECK(gradient.last == nullptr || TotalBytes(*gradient.last) == whole.count * sizeof(float));
  PS_CHECK(gradient.sum.empty() || gradient.sum.size() == whole.count);
  const FlushedSubnormals flushed;
  whole.inverse_divisor = gradient.inverse_divisor;
  if (gradient.last == nullptr) {
    whole.gradient = gradient.sum.data();  // The sum alone is the gradient.
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

/// Defines Run(arrays, states, gradient, stores, factors): it calls the file's own
/// StepAt<whether there is a sum>(stretch, position, factors) for all positions of an update, in
/// loops that are compiled for several instruction sets. Use it once in a rule's file, in an
/// unnamed namespace.
#define SLIPSTREAM_UPDATE_LOOPS(Factors)                                                \
  template <bool kHasSum>                                                               \
  SLIPSTREAM_INLINE void Loop(const Stretch s, const Factors f) {                       \
    SLIPSTREAM_INDEPENDENT_PASSES                                                       \
    for (size_t i = 0; i < s.count; ++i) StepAt<kHasSum>(s, i, f);                      \
  }                                                                                     \
  SLIPSTREAM_CPU_DISPATCH void LoopOfLast(Stretch s, Factors f) { Loop<false>(s, f); }  \
  SLIPSTREAM_CPU_DISPATCH void LoopOfSum(Stretch s, Factors f) { Loop<true>(s, f); }    \
  void Run(const UpdateArrays& arrays, size_t states, const CombinedGradient& gradient, \
           Stores stores, const Factors& factors) {                                     \
    ForEachStretch(arrays, states, gradient, stores, [&factors](const Stretch& s) {     \
      s.sum == nullptr ? LoopOfLast(s, factors) : LoopOfSum(s, factors);                \
    });                                                                                 \
  }

}  // namespace slipstream::update_stretches

#endif  // SLIPSTREAM_COMMON_KERNELS_RULES_UPDATE_STRETCHES_H_
