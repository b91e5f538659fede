#ifndef SLIPSTREAM_COMMON_KERNELS_HALF_VALUES_H_
#define SLIPSTREAM_COMMON_KERNELS_HALF_VALUES_H_

#include <bit>
#include <cstdint>

namespace slipstream {

/// Functions that convert one value of each 16-bit format to and from the bits of an fp32. They
/// have no branch, so that loops over them become vector code. Faster code must give the same
/// results.
///
/// bf16 is the upper half of an fp32: it has its range, and 8 bits of precision. fp16 is IEEE's
/// binary16: 11 bits of precision between 2^-14 and 65504, fewer down to 2^-24. As in IEEE 754,
/// encoding rounds to nearest, ties to even, and values beyond the range become infinite. A NaN
/// stays one, and keeps its sign and the upper bits of its payload; a signalling NaN becomes quiet,
/// except where a bf16 is decoded. Decoding is exact.

namespace half_values {

inline constexpr uint32_t kMagnitude = 0x7fffffff;
inline constexpr uint32_t kInfinity = 0x7f800000;

/// Returns `yes` or `no`. With the conditional operator g++ 12 would make slower code: it leaves a
/// loop scalar that chooses the result of a floating-point operation.
constexpr uint32_t Choose(bool condition, uint32_t yes, uint32_t no) {
  const uint32_t mask = 0u - uint32_t{condition};
  return (yes & mask) | (no & ~mask);
}

}  // namespace half_values

constexpr uint16_t Bf16OfBits(uint32_t bits) {
  using namespace half_values;  // NOLINT(google-build-using-namespace)
  // Add half a unit, less one bit if that would round a tie up to an odd number. The carry goes
  // into the exponent where it must, up to infinity.
  const uint32_t rounded = bits + 0x7fff + ((bits >> 16) & 1);
  const uint32_t quiet = bits | 0x400000;
  return static_cast<uint16_t>(Choose((bits & kMagnitude) > kInfinity, quiet, rounded) >> 16);
}

constexpr uint32_t BitsOfBf16(uint16_t value) { return uint32_t{value} << 16; }

constexpr uint16_t Fp16OfBits(uint32_t bits) {
  using namespace half_values;                   // NOLINT(google-build-using-namespace)
  constexpr uint32_t kNormalMin = 0x38800000;    // 2^-14
  constexpr uint32_t kOverflowMin = 0x47800000;  // 2^16; values just below round to it.
  constexpr uint32_t kBiasChange = (127u - 15u) << 23;
  const uint32_t magnitude = bits & kMagnitude;
  const uint32_t normal = (magnitude - kBiasChange + 0xfff + ((magnitude >> 13) & 1)) >> 13;
  // The last bit of a number from 0.5 up to 1 is worth 2^-24, like that of a subnormal fp16, so the
  // addition rounds at that bit.
  const uint32_t subnormal = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) -
                             std::bit_cast<uint32_t>(0.5f);
  const uint32_t nan = 0x7e00 | ((magnitude >> 13) & 0x3ff);
  uint32_t result = Choose(magnitude < kNormalMin, subnormal, normal);
  result = Choose(magnitude >= kOverflowMin, 0x7c00, result);
  result = Choose(magnitude > kInfinity, nan, result);
  return static_cast<uint16_t>(result | ((bits >> 16) & 0x8000));
}

constexpr uint32_t BitsOfFp16(uint16_t value) {
  using namespace half_values;                 // NOLINT(google-build-using-namespace)
  constexpr uint32_t kNormalMin = 0x38800000;  // 2^-14
  constexpr uint32_t kBiasChange = (127u - 15u) << 23;
  const uint32_t magnitude = (value & 0x7fffu) << 13;
  // Reads a subnormal's bits as those of a number from 2^-14 up, whose last bit is worth as much.
  const uint32_t subnormal = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude + kNormalMin) -
                                                     std::bit_cast<float>(kNormalMin));
  uint32_t result = magnitude < 1u << 23 ? subnormal : magnitude + kBiasChange;
  result = magnitude >= 0x1fu << 23 ? magnitude | kInfinity : result;
  result |= Choose(magnitude > 0x1fu << 23, 0x400000, 0);  // Makes a NaN quiet.
  return result | ((value & 0x8000u) << 16);
}

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_KERNELS_HALF_VALUES_H_
