#ifndef SLIPSTREAM_COMMON_BASE_LIMITS_H_
#define SLIPSTREAM_COMMON_BASE_LIMITS_H_

#include <cstddef>
#include <cstdint>

namespace slipstream {

/// Upper limits of a run. Settings and messages from peers are checked against them, so that no
/// peer can make another's memory grow without bound.

/// The number of servers, and so of shards, at most. Their ids are smaller than this.
inline constexpr uint32_t kServersMax = 256;

/// The number of worker ids that a run may use, at the same time or one after another. All ids are
/// smaller than this.
inline constexpr uint32_t kWorkersMax = 4096;

/// The most workers whose pushes an aggregator combines (cluster.tree.fanout).
inline constexpr uint32_t kFanoutMax = 64;

/// The most threads on which one worker computes.
inline constexpr uint32_t kWorkerThreadsMax = 256;

/// The most epochs of a run.
inline constexpr uint32_t kEpochsMax = 100'000;

/// The most mini-batches of a run that its settings may name.
inline constexpr uint64_t kStepsMax = uint64_t{1} << 40;

/// As a number of pushes from one fetch of weights to the next: no push fetches any. It is more
/// than a run has.
inline constexpr uint64_t kNeverFetches = uint64_t{1} << 62;

/// The most examples of an epoch. The bound keeps counts of mini-batches far from overflow.
inline constexpr uint64_t kExamplesMax = uint64_t{1} << 40;

/// The largest speed of a worker that is believed, in mini-batches per second.
inline constexpr double kStepsPerSecondMax = 1e9;

/// The most versions that a shard keeps for readers.
inline constexpr uint32_t kVersionsKeptMax = 64;

/// Bounds of wire.chunk_bytes where a run sets it: the bytes of the values of one message, counted
/// as fp32.
inline constexpr uint32_t kChunkBytesMin = uint32_t{4} << 10;
inline constexpr uint32_t kChunkBytesMax = uint32_t{16} << 20;

/// A gradient that has a magnitude of this or more is refused like one that is not finite. Below
/// it, neither a sum of the gradients of kWorkersMax workers nor the square of such a sum overflows
/// an fp32.
inline constexpr float kGradientLimit = 0x1p50f;
static_assert(kGradientLimit * kWorkersMax * kGradientLimit * kWorkersMax < 0x1p125f);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_BASE_LIMITS_H_
