#include "common/kernels/finite.h"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "common/kernels/float_runs.h"

namespace slipstream {
namespace {

using UnalignedWord __attribute__((aligned(1), may_alias)) = uint32_t;

/// Returns the largest magnitude of the run as bits: magnitudes of floats order like their bits,
/// and everything from 0x7f800000 on is infinite or NaN. It has no branch, so the loop becomes
/// vector code.
SLIPSTREAM_CPU_DISPATCH
uint32_t LargestMagnitudeBits(const UnalignedWord* words, size_t count) {
  uint32_t largest = 0;
  for (size_t i = 0; i < count; ++i) {
    const uint32_t magnitude = words[i] & 0x7fffffffu;
    largest = magnitude > largest ? magnitude : largest;
  }
  return largest;
}

}  // namespace

bool AllFinite(const Segments& segments) {
  return AllBelow(segments, std::numeric_limits<float>::infinity());
}

bool AllBelow(const Segments& segments, float limit) {
  const auto limit_bits = std::bit_cast<uint32_t>(limit);
  bool below = true;
  ForEachFloatRun(segments, [&](size_t, const UnalignedFloat* values, size_t count) {
    const auto* words = reinterpret_cast<const UnalignedWord*>(values);
    below = below && LargestMagnitudeBits(words, count) < limit_bits;
  });
  return below;
}

}  // namespace slipstream
