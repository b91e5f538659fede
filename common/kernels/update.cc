#include "common/kernels/update.h"

#include <cstddef>

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

/// The factors of one update, the same for every element.
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
void SgdSingleRun(const Stretch& s, const Factors& f) {
  const float* __restrict weights_in = s.weights_in;
  float* __restrict weights_out = s.weights_out;
  const UnalignedFloat* __restrict gradient = s.gradient;
  for (size_t i = 0; i < s.count; ++i) {
    const float g = f.weight * gradient[i] * f.inverse_divisor + f.decay * weights_in[i];
    weights_out[i] = weights_in[i] - f.rate * g;
  }
}

SLIPSTREAM_CPU_DISPATCH
void SgdSumRun(const Stretch& s, const Factors& f) {
  const float* __restrict weights_in = s.weights_in;
  float* __restrict weights_out = s.weights_out;
  const float* __restrict sum = s.sum;
  const UnalignedFloat* __restrict gradient = s.gradient;
  for (size_t i = 0; i < s.count; ++i) {
    const float g = (sum[i] + f.weight * gradient[i]) * f.inverse_divisor + f.decay * weights_in[i];
    weights_out[i] = weights_in[i] - f.rate * g;
  }
}

SLIPSTREAM_CPU_DISPATCH
void MomentumSingleRun(const Stretch& s, const Factors& f) {
  const float* __restrict weights_in = s.weights_in;
  float* __restrict weights_out = s.weights_out;
  const float* __restrict velocity_in = s.velocity_in;
  float* __restrict velocity_out = s.velocity_out;
  const UnalignedFloat* __restrict gradient = s.gradient;
  for (size_t i = 0; i < s.count; ++i) {
    const float g = f.weight * gradient[i] * f.inverse_divisor + f.decay * weights_in[i];
    const float velocity = f.momentum * velocity_in[i] + g;
    velocity_out[i] = velocity;
    weights_out[i] = weights_in[i] - f.rate * velocity;
  }
}

SLIPSTREAM_CPU_DISPATCH
void MomentumSumRun(const Stretch& s, const Factors& f) {
  const float* __restrict weights_in = s.weights_in;
  float* __restrict weights_out = s.weights_out;
  const float* __restrict velocity_in = s.velocity_in;
  float* __restrict velocity_out = s.velocity_out;
  const float* __restrict sum = s.sum;
  const UnalignedFloat* __restrict gradient = s.gradient;
  for (size_t i = 0; i < s.count; ++i) {
    const float g = (sum[i] + f.weight * gradient[i]) * f.inverse_divisor + f.decay * weights_in[i];
    const float velocity = f.momentum * velocity_in[i] + g;
    velocity_out[i] = velocity;
    weights_out[i] = weights_in[i] - f.rate * velocity;
  }
}

/// Calls run(stretch) for all of `whole`, with its sum where there is one besides the last part.
template <typename Run>
void ForEachStretch(const Stretch& whole, const CombinedGradient& gradient, Run run) {
  const auto stretch_at = [&whole](size_t position, size_t count) {
    Stretch stretch = whole;
    stretch.weights_in += position;
    stretch.weights_out += position;
    if (stretch.velocity_in != nullptr) {
      stretch.velocity_in += position;
      stretch.velocity_out += position;
    }
    stretch.count = count;
    return stretch;
  };
  if (gradient.last == nullptr) {
    Stretch stretch = stretch_at(0, whole.count);
    stretch.gradient = gradient.sum.data();
    run(stretch);
    return;
  }
  ForEachFloatRun(*gradient.last, [&](size_t position, const UnalignedFloat* values, size_t count) {
    Stretch stretch = stretch_at(position, count);
    if (!gradient.sum.empty()) stretch.sum = gradient.sum.data() + position;
    stretch.gradient = values;
    run(stretch);
  });
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
               const CombinedGradient& gradient, float rate, float decay) {
  CheckSizes(weights_in, weights_out, gradient);
  const Factors factors = {gradient.last != nullptr ? gradient.last_weight : 1.0f,
                           gradient.inverse_divisor, rate, 0.0f, decay};
  const Stretch whole = {weights_in.data(), weights_out.data(), nullptr, nullptr, nullptr,
                         nullptr,           weights_in.size()};
  ForEachStretch(whole, gradient, [&factors](const Stretch& stretch) {
    stretch.sum == nullptr ? SgdSingleRun(stretch, factors) : SgdSumRun(stretch, factors);
  });
}

void MomentumUpdate(std::span<const float> weights_in, std::span<float> weights_out,
                    std::span<const float> velocity_in, std::span<float> velocity_out,
                    const CombinedGradient& gradient, float rate, float momentum, float decay) {
  CheckSizes(weights_in, weights_out, gradient);
  PS_CHECK(velocity_in.size() == weights_in.size() && velocity_out.size() == weights_in.size());
  const Factors factors = {gradient.last != nullptr ? gradient.last_weight : 1.0f,
                           gradient.inverse_divisor, rate, momentum, decay};
  const Stretch whole = {
      weights_in.data(), weights_out.data(), velocity_in.data(), velocity_out.data(), nullptr,
      nullptr,           weights_in.size()};
  ForEachStretch(whole, gradient, [&factors](const Stretch& stretch) {
    stretch.sum == nullptr ? MomentumSingleRun(stretch, factors) : MomentumSumRun(stretch, factors);
  });
}

}  // namespace slipstream
