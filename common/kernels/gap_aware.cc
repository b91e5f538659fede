#include "common/kernels/gap_aware.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "common/base/check.h"
#include "common/kernels/float_runs.h"
#include "common/kernels/flushed_subnormals.h"

namespace slipstream {
namespace {

constexpr uint64_t kMeanUpdates = 100;

/// Gives a weight that has never moved a gap of 1.
constexpr float kLeastStep = 1e-20f;

/// One run of a gradient's values, and the weights that compensate them.
struct Run {
  const UnalignedFloat* gradient;
  const float* base;
  const float* now;
  const float* mean_step;
  size_t count;
  float clip;
  float weight;
};

SLIPSTREAM_INLINE float CompensatedAt(const Run& run, size_t i) {
  const float step = run.mean_step[i] + kLeastStep;
  return run.clip * run.gradient[i] * (step / (step + std::fabs(run.now[i] - run.base[i])));
}

SLIPSTREAM_CPU_DISPATCH
void AssignRun(float* __restrict sum, const Run run) {
  for (size_t i = 0; i < run.count; ++i) sum[i] = run.weight * CompensatedAt(run, i);
}

SLIPSTREAM_CPU_DISPATCH
void AddRun(float* __restrict sum, const Run run) {
  for (size_t i = 0; i < run.count; ++i) sum[i] += run.weight * CompensatedAt(run, i);
}

SLIPSTREAM_CPU_DISPATCH
void NoteSteps(const float* before, const float* after, float share, float* __restrict mean_step,
               size_t count) {
  for (size_t i = 0; i < count; ++i) {
    mean_step[i] += share * (std::fabs(after[i] - before[i]) - mean_step[i]);
  }
}

}  // namespace

void FoldGapAware(std::span<float> sum, const Segments& gradient, std::span<const float> base,
                  std::span<const float> now, std::span<const float> mean_step,
                  const FoldTerms& terms) {
  PS_CHECK(TotalBytes(gradient) == sum.size_bytes() && mean_step.size() == sum.size());
  PS_CHECK(base.size() == sum.size() && now.size() == sum.size());
  const FlushedSubnormals flushed;
  ForEachFloatRun(gradient, [&](size_t position, const UnalignedFloat* values, size_t count) {
    const Run run = {values, &base[position], &now[position], &mean_step[position],
                     count,  terms.clip,      terms.weight};
    terms.first ? AssignRun(&sum[position], run) : AddRun(&sum[position], run);
  });
}

void NoteStep(std::span<const float> before, std::span<const float> after, uint64_t updates,
              std::span<float> mean_step) {
  PS_CHECK(updates > 0 && before.size() == mean_step.size() && after.size() == mean_step.size());
  const float share = 1.0f / static_cast<float>(std::min(updates, kMeanUpdates));
  const FlushedSubnormals flushed;
  NoteSteps(before.data(), after.data(), share, mean_step.data(), mean_step.size());
}

}  // namespace slipstream
