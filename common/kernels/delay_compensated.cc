#include "common/kernels/delay_compensated.h"

#include <cmath>
#include <cstddef>

#include "common/base/check.h"
#include "common/kernels/float_runs.h"
#include "common/kernels/flushed_subnormals.h"

namespace slipstream {
namespace {

/// One run of a gradient's values, and the weights that compensate them.
struct Run {
  const UnalignedFloat* gradient;
  const float* base;
  const float* now;
  size_t count;
  float strength;
  float clip;
  float weight;
};

/// Returns the compensated value at position i. Where the weights have not moved, it is the
/// gradient's own value, however large: g² computed alone might overflow, and give NaN.
SLIPSTREAM_INLINE float CompensatedAt(const Run& run, size_t i) {
  const float g = run.clip * run.gradient[i];
  return g + (run.strength * g) * (g * (run.now[i] - run.base[i]));
}

SLIPSTREAM_CPU_DISPATCH
void AssignRun(float* __restrict sum, const Run run) {
  for (size_t i = 0; i < run.count; ++i) sum[i] = run.weight * CompensatedAt(run, i);
}

SLIPSTREAM_CPU_DISPATCH
void AddRun(float* __restrict sum, const Run run) {
  for (size_t i = 0; i < run.count; ++i) sum[i] += run.weight * CompensatedAt(run, i);
}

/// Takes the value into its mean square first.
SLIPSTREAM_INLINE float AdaptedAt(const Run& run, float* mean_square, size_t i) {
  const float g = run.clip * run.gradient[i];
  mean_square[i] = 0.95f * mean_square[i] + 0.05f * (g * g);
  const float strength = run.strength / std::sqrt(mean_square[i] + 1e-7f);
  return g + (strength * g) * (g * (run.now[i] - run.base[i]));
}

SLIPSTREAM_CPU_DISPATCH
void AssignAdapted(float* __restrict sum, float* __restrict mean_square, const Run run) {
  for (size_t i = 0; i < run.count; ++i) sum[i] = run.weight * AdaptedAt(run, mean_square, i);
}

SLIPSTREAM_CPU_DISPATCH
void AddAdapted(float* __restrict sum, float* __restrict mean_square, const Run run) {
  for (size_t i = 0; i < run.count; ++i) sum[i] += run.weight * AdaptedAt(run, mean_square, i);
}

}  // namespace

void FoldDelayAdapted(std::span<float> sum, const Segments& gradient, std::span<const float> base,
                      std::span<const float> now, std::span<float> mean_square, float strength,
                      const FoldTerms& terms) {
  PS_CHECK(TotalBytes(gradient) == sum.size_bytes() && mean_square.size() == sum.size());
  PS_CHECK(base.size() == sum.size() && now.size() == sum.size());
  const FlushedSubnormals flushed;
  ForEachFloatRun(gradient, [&](size_t position, const UnalignedFloat* values, size_t count) {
    const Run run = {values,   &base[position], &now[position], count,
                     strength, terms.clip,      terms.weight};
    terms.first ? AssignAdapted(&sum[position], &mean_square[position], run)
                : AddAdapted(&sum[position], &mean_square[position], run);
  });
}

void FoldDelayCompensated(std::span<float> sum, const Segments& gradient,
                          std::span<const float> base, std::span<const float> now, float strength,
                          const FoldTerms& terms) {
  PS_CHECK(TotalBytes(gradient) == sum.size_bytes());
  PS_CHECK(base.size() == sum.size() && now.size() == sum.size());
  const FlushedSubnormals flushed;
  ForEachFloatRun(gradient, [&](size_t position, const UnalignedFloat* values, size_t count) {
    const Run run = {values,   &base[position], &now[position], count,
                     strength, terms.clip,      terms.weight};
    terms.first ? AssignRun(&sum[position], run) : AddRun(&sum[position], run);
  });
}

}  // namespace slipstream
