#ifndef SLIPSTREAM_COMMON_BASE_LIMITS_H_
#define SLIPSTREAM_COMMON_BASE_LIMITS_H_

#include <cstddef>
#include <cstdint>

namespace slipstream {

/// What a run may have at most. Settings are checked against it, and so is what peers say, so that
/// nobody can make another's memory grow.

/// Servers, and so shards. Their numbers are below it.
inline constexpr uint32_t kServersMax = 256;

/// Ids of workers, whether at the same time or one after another. All are below it.
inline constexpr uint32_t kWorkersMax = 4096;

/// Bytes of the values of one message, were they fp32, where a run does not leave them to us.
inline constexpr uint32_t kChunkBytesMin = uint32_t{4} << 10;
inline constexpr uint32_t kChunkBytesMax = uint32_t{16} << 20;

/// A gradient with a magnitude of this or more is refused as one that is not finite is: no sum of
/// the gradients of kWorkersMax workers, and no square of such a sum, overflows an fp32 otherwise.
inline constexpr float kGradientLimit = 0x1p50f;
static_assert(kGradientLimit * kWorkersMax * kGradientLimit * kWorkersMax < 0x1p125f);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_BASE_LIMITS_H_
