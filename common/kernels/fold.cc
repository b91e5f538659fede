#include "common/kernels/fold.h"

#include <cstddef>

#include "common/base/check.h"
#include "common/kernels/float_runs.h"
#include "common/kernels/flushed_subnormals.h"

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

SLIPSTREAM_CPU_DISPATCH
void ScaleRun(float* values, size_t count, float factor) {
  for (size_t i = 0; i < count; ++i) values[i] *= factor;
}

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

void ScaleValues(std::span<float> values, float factor) {
  const FlushedSubnormals flushed;
  ScaleRun(values.data(), values.size(), factor);
}

}  // namespace slipstream
