#include "common/kernels/int8_blocks.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "common/base/check.h"
#include "common/base/encoding.h"
#include "common/kernels/float_runs.h"
#include "common/kernels/whole_blocks.h"

namespace slipstream {
namespace {

constexpr size_t kBlockValues = RowOf(Encoding::kInt8).block_values;
constexpr size_t kScaleBytes = sizeof(float);
static_assert(RowOf(Encoding::kInt8).block_bytes == kScaleBytes);

constexpr float kMax = 127;
constexpr float kZeroBelow = 1e-30f;

/// Returns the bits of the largest magnitude. Magnitudes order like their bits, with infinities and
/// NaNs above all numbers.
SLIPSTREAM_CPU_DISPATCH
int32_t LargestMagnitudeBits(const float* values, size_t count) {
  int32_t largest = 0;
  for (size_t i = 0; i < count; ++i) {
    largest = std::max(largest, std::bit_cast<int32_t>(values[i]) & 0x7fffffff);
  }
  return largest;
}

SLIPSTREAM_CPU_DISPATCH
void Quantize(const float* __restrict values, size_t count, float scale, int8_t* __restrict out) {
  // Adding kWhole leaves no bits behind the point. Sums are rounded to nearest, ties to even.
  constexpr float kWhole = 0x1.8p23f;
  for (size_t i = 0; i < count; ++i) {
    const float whole = (values[i] / scale + kWhole) - kWhole;
    out[i] = static_cast<int8_t>(static_cast<int32_t>(whole));
  }
}

SLIPSTREAM_CPU_DISPATCH
void Scale(const int8_t* __restrict bytes, size_t count, float scale, float* __restrict out) {
  for (size_t i = 0; i < count; ++i) out[i] = static_cast<float>(bytes[i]) * scale;
}

void EncodeBlock(std::span<const float> values, std::byte* block) {
  const auto largest = std::bit_cast<float>(LargestMagnitudeBits(values.data(), values.size()));
  auto* const out = reinterpret_cast<int8_t*>(block + kScaleBytes);
  float scale = largest / kMax;
  if (!(largest <= std::numeric_limits<float>::max())) {
    scale = std::numeric_limits<float>::infinity();
    std::fill_n(out, values.size(), int8_t{1});
  } else if (largest < kZeroBelow) {
    scale = 0;
    std::fill_n(out, values.size(), int8_t{0});
  } else {
    Quantize(values.data(), values.size(), scale, out);
  }
  std::memcpy(block, &scale, kScaleBytes);
}

void DecodeBlock(const std::byte* block, std::span<float> out) {
  float scale = 0;
  std::memcpy(&scale, block, kScaleBytes);
  // No value of such a block may decode to a number, not even one whose byte is 0.
  if (!std::isfinite(scale)) scale = std::numeric_limits<float>::quiet_NaN();
  Scale(reinterpret_cast<const int8_t*>(block + kScaleBytes), out.size(), scale, out.data());
}

}  // namespace

void EncodeInt8(std::span<const float> values, std::span<std::byte> bytes) {
  PS_CHECK(bytes.size() == EncodedBytes(Encoding::kInt8, values.size()));
  std::byte* block = bytes.data();
  while (!values.empty()) {
    const size_t count = std::min(kBlockValues, values.size());
    EncodeBlock(values.first(count), block);
    values = values.subspan(count);
    block += kScaleBytes + count;
  }
}

void DecodeInt8(const Segments& bytes, std::span<float> out) {
  PS_CHECK(TotalBytes(bytes) == EncodedBytes(Encoding::kInt8, out.size()));
  ForEachWholeBlock<Encoding::kInt8>(bytes, out, DecodeBlock);
}

}  // namespace slipstream
