#ifndef SLIPSTREAM_COMMON_KERNELS_HALF_ENCODE_H_
#define SLIPSTREAM_COMMON_KERNELS_HALF_ENCODE_H_

#include <cstdint>
#include <span>

namespace slipstream {

/// Rounds fp32 values to 16-bit ones, as half_values.h says, equal to the bit on every processor.
/// REQUIRES: equal sizes; in and out do not overlap.
void EncodeBf16(std::span<const float> values, std::span<uint16_t> out);
void EncodeFp16(std::span<const float> values, std::span<uint16_t> out);

/// Does what EncodeFp16 does on processors that have no instruction for it.
void EncodeFp16Plain(std::span<const float> values, std::span<uint16_t> out);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_KERNELS_HALF_ENCODE_H_
