#ifndef SLIPSTREAM_COMMON_KERNELS_STREAMED_STORES_H_
#define SLIPSTREAM_COMMON_KERNELS_STREAMED_STORES_H_

#include <cstddef>
#include <cstdint>

namespace slipstream {

/// How a kernel writes its results.
///
/// A store to memory that is not in a cache first reads the line that it changes a part of. Where
/// whole lines are written, and nobody reads them before they would have left the caches anyway,
/// these reads are a third of an update's traffic, for nothing. Streamed stores do without them:
/// measured, an update of 64 MiB takes three quarters of the time.
enum class Stores : uint8_t { kCached, kStreamed };

/// Returns the stores that fit an array of this size, of which a kernel may write a part at a time.
/// Arrays several times as large as a core's own caches are streamed.
constexpr Stores StoresFor(size_t bytes) {
  constexpr size_t kStreamedBytesMin = size_t{8} << 20;
  return bytes >= kStreamedBytesMin ? Stores::kStreamed : Stores::kCached;
}

/// The number of values in a cache line.
inline constexpr size_t kLineValues = 16;

/// Copies `count` values, which may begin at any byte of `from`, past the caches. `from` and `to`
/// do not overlap. Call FinishStreaming before other threads are told of the values.
void StreamValues(const void* from, float* to, size_t count);

/// Orders streamed stores of this thread before what it does next.
void FinishStreaming();

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_KERNELS_STREAMED_STORES_H_
