#include "tests/benchmarks/raw_part.h"

#include <cmath>

#include "common/kernels/float_runs.h"

namespace slipstream::benchmarks {
namespace {

SLIPSTREAM_CPU_DISPATCH
void Sgd(float* __restrict weights, const float* __restrict gradient, size_t count) {
  for (size_t i = 0; i < count; ++i) weights[i] -= 1e-9f * gradient[i];
}

SLIPSTREAM_CPU_DISPATCH
void Momentum(float* __restrict weights, float* __restrict velocity,
              const float* __restrict gradient, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    velocity[i] = 0.9f * velocity[i] + gradient[i];
    weights[i] -= 1e-9f * velocity[i];
  }
}

SLIPSTREAM_CPU_DISPATCH
void Adam(float* __restrict weights, float* __restrict mean, float* __restrict square,
          const float* __restrict gradient, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    mean[i] = 0.9f * mean[i] + 0.1f * gradient[i];
    square[i] = 0.999f * square[i] + 0.001f * gradient[i] * gradient[i];
    weights[i] -= 1e-9f * mean[i] / (std::sqrt(square[i]) + 1e-8f);
  }
}

}  // namespace

size_t StateArrays(const std::string& rule) {
  return rule == "sgd" ? 0 : rule == "momentum" ? 1 : 2;
}

void RawPart::Apply(size_t begin, std::span<const float> gradient) {
  const std::lock_guard lock(mutex_);
  float* const weights = weights_.data() + begin;
  if (state_.empty()) {
    Sgd(weights, gradient.data(), gradient.size());
  } else if (state_.size() == 1) {
    Momentum(weights, state_[0].data() + begin, gradient.data(), gradient.size());
  } else {
    Adam(weights, state_[0].data() + begin, state_[1].data() + begin, gradient.data(),
         gradient.size());
  }
}

}  // namespace slipstream::benchmarks
