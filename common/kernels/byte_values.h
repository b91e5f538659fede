#ifndef SLIPSTREAM_COMMON_KERNELS_BYTE_VALUES_H_
#define SLIPSTREAM_COMMON_KERNELS_BYTE_VALUES_H_

#include <cstdint>
#include <span>

namespace slipstream {

/// The value that a byte of an image stands for: (byte / divisor − mean) / deviation, rounded to
/// fp32 after each step. The defaults give the byte itself.
struct ByteScale {
  float divisor = 1;
  float mean = 0;
  float deviation = 1;
};

/// Writes the values of all bytes. The result is equal to the bit on every instruction set.
/// REQUIRES: the spans have equal size.
void ScaleBytes(std::span<const uint8_t> bytes, const ByteScale& scale, std::span<float> values);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_KERNELS_BYTE_VALUES_H_
