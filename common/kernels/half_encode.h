#ifndef SLIPSTREAM_COMMON_KERNELS_HALF_ENCODE_H_
#define SLIPSTREAM_COMMON_KERNELS_HALF_ENCODE_H_

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace slipstream {

/// fp32 values as 16-bit ones, rounded as half_values.h says, equal to the bit on every processor.
/// REQUIRES: equal sizes; in and out do not overlap.
void EncodeBf16(std::span<const float> values, std::span<uint16_t> out);
void EncodeFp16(std::span<const float> values, std::span<uint16_t> out);

/// One way to encode, of those that give the same result.
struct HalfEncoder {
  std::string_view name;  // "plain", or the instructions that it needs.
  void (*encode)(const float* values, uint16_t* out, size_t count);
};

/// All ways that this processor has, the fastest first: what the functions above choose from.
std::vector<HalfEncoder> Bf16Encoders();
std::vector<HalfEncoder> Fp16Encoders();

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_KERNELS_HALF_ENCODE_H_
