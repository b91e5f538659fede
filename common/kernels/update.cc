#include "common/kernels/update.h"

#include <algorithm>
#include <cstddef>
#include <utility>

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

/// The factors of one update, the same for every element. Kernels take them by value: what is
/// written might otherwise be one of them, and the loop would stay scalar.
struct Factors {
  float weight;
  float inverse_divisor;
  float rate;
  float momentum;
  float decay;
};

/// One stretch of an update's arrays. `sum` is null where the round holds one gradient only.
struct Stretch {
  const float* weights_in;
  float* weights_out;
  const float* velocity_in;
  float* velocity_out;
  const float* sum;
  const UnalignedFloat* gradient;
  size_t count;
};

SLIPSTREAM_CPU_DISPATCH
void SgdSingleRun(const Stretch& s, Factors f) {
  const float* __restrict weights_in = s.weights_in;
  float* __restrict weights_out = s.weights_out;
  const UnalignedFloat* __restrict gradient = s.gradient;
  SLIPSTREAM_INDEPENDENT_PASSES
  for (size_t i = 0; i < s.count; ++i) {
    const float g = f.weight * gradient[i] * f.inverse_divisor + f.decay * weights_in[i];
    weights_out[i] = weights_in[i] - f.rate * g;
  }
}

SLIPSTREAM_CPU_DISPATCH
void SgdSumRun(const Stretch& s, Factors f) {
  const float* __restrict weights_in = s.weights_in;
  float* __restrict weights_out = s.weights_out;
  const float* __restrict sum = s.sum;
  const UnalignedFloat* __restrict gradient = s.gradient;
  SLIPSTREAM_INDEPENDENT_PASSES
  for (size_t i = 0; i < s.count; ++i) {
    const float g = (sum[i] + f.weight * gradient[i]) * f.inverse_divisor + f.decay * weights_in[i];
    weights_out[i] = weights_in[i] - f.rate * g;
  }
}

SLIPSTREAM_CPU_DISPATCH
void MomentumSingleRun(const Stretch& s, Factors f) {
  const float* __restrict weights_in = s.weights_in;
  float* __restrict weights_out = s.weights_out;
  const float* __restrict velocity_in = s.velocity_in;
  float* __restrict velocity_out = s.velocity_out;
  const UnalignedFloat* __restrict gradient = s.gradient;
  SLIPSTREAM_INDEPENDENT_PASSES
  for (size_t i = 0; i < s.count; ++i) {
    const float g = f.weight * gradient[i] * f.inverse_divisor + f.decay * weights_in[i];
    const float velocity = f.momentum * velocity_in[i] + g;
    velocity_out[i] = velocity;
    weights_out[i] = weights_in[i] - f.rate * velocity;
  }
}

SLIPSTREAM_CPU_DISPATCH
void MomentumSumRun(const Stretch& s, Factors f) {
  const float* __restrict weights_in = s.weights_in;
  float* __restrict weights_out = s.weights_out;
  const float* __restrict velocity_in = s.velocity_in;
  float* __restrict velocity_out = s.velocity_out;
  const float* __restrict sum = s.sum;
  const UnalignedFloat* __restrict gradient = s.gradient;
  SLIPSTREAM_INDEPENDENT_PASSES
  for (size_t i = 0; i < s.count; ++i) {
    const float g = (sum[i] + f.weight * gradient[i]) * f.inverse_divisor + f.decay * weights_in[i];
    const float velocity = f.momentum * velocity_in[i] + g;
    velocity_out[i] = velocity;
    weights_out[i] = weights_in[i] - f.rate * velocity;
  }
}

/// `count` positions of `whole` from `position` on.
Stretch Part(const Stretch& whole, size_t position, size_t count) {
  Stretch part = whole;
  part.weights_in += position;
  part.weights_out += position;
  if (part.velocity_in != nullptr) {
    part.velocity_in += position;
    part.velocity_out += position;
  }
  if (part.sum != nullptr) part.sum += position;
  if (part.gradient != nullptr) part.gradient += position;
  part.count = count;
  return part;
}

/// Pieces that stay in the first cache, with what is made of them.
constexpr size_t kPieceValues = 1024;

/// Calls run(piece). A sum that lies in weights_out is moved out of the way first, as kernels rely
/// on it that what they write is nowhere else.
template <typename Run>
void RunBesideSum(Stretch piece, Run run) {
  alignas(64) float sums[kPieceValues];
  std::copy_n(piece.sum, piece.count, sums);
  piece.sum = sums;
  run(piece);
}

/// Calls run(piece), which makes its values in the cache, and streams them out.
template <typename Run>
void RunStreamed(Stretch piece, Run run) {
  alignas(64) float weights[kPieceValues];
  alignas(64) float velocity[kPieceValues];
  float* const weights_out = std::exchange(piece.weights_out, weights);
  float* const velocity_out = piece.velocity_out;
  if (velocity_out != nullptr) piece.velocity_out = velocity;
  run(piece);
  StreamValues(weights, weights_out, piece.count);
  if (velocity_out != nullptr) StreamValues(velocity, velocity_out, piece.count);
}

/// Calls run(stretch) for stretches of `whole`, so that it can read and write as it likes.
template <typename Run>
void RunStretch(const Stretch& whole, Stores stores, Run run) {
  const auto run_piece = [&run](Stretch piece) {
    // A sum alone is the gradient.
    if (piece.gradient == nullptr) piece.gradient = std::exchange(piece.sum, nullptr);
    run(piece);
  };
  // Lines of a sum are in the cache because it was read, so there is nothing to save.
  const bool is_over_sum = whole.sum == whole.weights_out;
  if (!is_over_sum && stores == Stores::kCached) return run_piece(whole);
  for (size_t begin = 0; begin < whole.count; begin += kPieceValues) {
    const Stretch piece = Part(whole, begin, std::min(kPieceValues, whole.count - begin));
    is_over_sum ? RunBesideSum(piece, run_piece) : RunStreamed(piece, run_piece);
  }
}

/// Calls run(stretch) for all of `whole`, with its sum where there is one besides the last part.
template <typename Run>
void ForEachStretch(Stretch whole, const CombinedGradient& gradient, Stores stores, Run run) {
  if (!gradient.sum.empty()) whole.sum = gradient.sum.data();
  if (gradient.last == nullptr) {
    RunStretch(whole, stores, run);
  } else {
    ForEachFloatRun(*gradient.last,
                    [&](size_t position, const UnalignedFloat* values, size_t count) {
                      Stretch stretch = Part(whole, position, count);
                      stretch.gradient = values;
                      RunStretch(stretch, stores, run);
                    });
  }
  if (stores == Stores::kStreamed) FinishStreaming();
}

void CheckSizes(std::span<const float> in, std::span<const float> out,
                const CombinedGradient& gradient) {
  PS_CHECK(in.size() == out.size());
  PS_CHECK(gradient.last != nullptr || gradient.sum.size() == in.size());
  PS_CHECK(gradient.last == nullptr || TotalBytes(*gradient.last) == in.size_bytes());
  PS_CHECK(gradient.sum.empty() || gradient.sum.size() == in.size());
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
  CheckSizes(weights_in, weights_out, gradient);
  const Factors factors = {gradient.last != nullptr ? gradient.last_weight : 1.0f,
                           gradient.inverse_divisor, rate, 0.0f, decay};
  const Stretch whole = {weights_in.data(), weights_out.data(), nullptr, nullptr, nullptr,
                         nullptr,           weights_in.size()};
  ForEachStretch(whole, gradient, stores, [&factors](const Stretch& stretch) {
    stretch.sum == nullptr ? SgdSingleRun(stretch, factors) : SgdSumRun(stretch, factors);
  });
}

void MomentumUpdate(std::span<const float> weights_in, std::span<float> weights_out,
                    std::span<const float> velocity_in, std::span<float> velocity_out,
                    const CombinedGradient& gradient, float rate, float momentum, float decay,
                    Stores stores) {
  CheckSizes(weights_in, weights_out, gradient);
  PS_CHECK(velocity_in.size() == weights_in.size() && velocity_out.size() == weights_in.size());
  const Factors factors = {gradient.last != nullptr ? gradient.last_weight : 1.0f,
                           gradient.inverse_divisor, rate, momentum, decay};
  const Stretch whole = {
      weights_in.data(), weights_out.data(), velocity_in.data(), velocity_out.data(), nullptr,
      nullptr,           weights_in.size()};
  ForEachStretch(whole, gradient, stores, [&factors](const Stretch& stretch) {
    stretch.sum == nullptr ? MomentumSingleRun(stretch, factors) : MomentumSumRun(stretch, factors);
  });
}

}  // namespace slipstream
