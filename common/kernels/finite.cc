#include "common/kernels/finite.h"

#include <cstddef>
#include <cstdint>

#include "common/kernels/float_runs.h"

namespace slipstream {
namespace {

using UnalignedWord __attribute__((aligned(1), may_alias)) = uint32_t;

/// The largest magnitude of the run as bits: magnitudes of floats order like their bits, and
/// everything from 0x7f800000 on is infinite or NaN. No branch, so the loop becomes vector code.
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
  bool finite = true;
  ForEachFloatRun(segments, [&finite](size_t, const UnalignedFloat* values, size_t count) {
    const auto* words = reinterpret_cast<const UnalignedWord*>(values);
    finite = finite && LargestMagnitudeBits(words, count) < 0x7f800000u;
  });
  return finite;
}

}  // namespace slipstream
