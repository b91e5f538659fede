#include "common/kernels/byte_values.h"

#include <cstddef>

#include "common/base/check.h"
#include "common/kernels/float_runs.h"

namespace slipstream {
namespace {

SLIPSTREAM_CPU_DISPATCH
void Scale(const uint8_t* bytes, size_t count, ByteScale scale, float* values) {
  SLIPSTREAM_INDEPENDENT_PASSES
  for (size_t i = 0; i < count; ++i) {
    values[i] = (static_cast<float>(bytes[i]) / scale.divisor - scale.mean) / scale.deviation;
  }
}

}  // namespace

void ScaleBytes(std::span<const uint8_t> bytes, const ByteScale& scale, std::span<float> values) {
  PS_CHECK(bytes.size() == values.size());
  Scale(bytes.data(), bytes.size(), scale, values.data());
}

}  // namespace slipstream
