#ifndef SLIPSTREAM_COMMON_KERNELS_VALUES_CHECKSUM_H_
#define SLIPSTREAM_COMMON_KERNELS_VALUES_CHECKSUM_H_

#include <cstdint>
#include <span>

namespace slipstream {

/// Returns the checksum of a tensor's values, or of a part of them, by which readers tell whether
/// they have the weights that a shard has: XXH3-64 with seed 0 of the values as little-endian fp32.
uint64_t ValuesChecksum(std::span<const float> values);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_KERNELS_VALUES_CHECKSUM_H_
