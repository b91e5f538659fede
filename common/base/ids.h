#ifndef SLIPSTREAM_COMMON_BASE_IDS_H_
#define SLIPSTREAM_COMMON_BASE_IDS_H_

#include <cstdint>

namespace slipstream {

/// Each kind of number is a type of its own: passing one where another belongs does not compile.

/// Names a range of the model and the server process that owns it. From 0 to S−1.
enum class ShardId : uint32_t {};

/// Names a learner process. From 0 to λ−1 at the start of a run, higher for workers that join
/// later.
enum class WorkerId : uint32_t {};

/// The number that the coordinator gives a worker at each registration, unique within a run. An
/// older one is fenced.
enum class Incarnation : uint64_t {};

/// A worker's push counter on one shard, contiguous from 1 within an incarnation.
enum class Sequence : uint64_t {};

/// A shard counts its generations: the first is 0, and another begins when the shard goes on from
/// an older state. Versions, bases and sequences belong to one generation, and are compared only
/// within it.
enum class Generation : uint64_t {};

/// A shard's clock: 0 for the initial weights, +1 with every update.
enum class Version : uint64_t {};

/// A worker's clock in runs whose work comes in units: the number of pushes that the worker has
/// made. The worker counts them itself, with one number for all shards.
enum class WorkerClock : uint64_t {};

/// The largest clock that is accepted, so that counting on from an accepted clock is safe.
inline constexpr WorkerClock kWorkerClockMax{uint64_t{1} << 62};

/// The number of a membership view; higher is newer.
enum class ViewNumber : uint64_t {};

/// Names a client's call to a shard that waits for an answer, or is about to wait. The shell
/// chooses it; the shard does not interpret it.
enum class CallId : uint64_t {};

constexpr uint32_t Value(ShardId id) { return static_cast<uint32_t>(id); }
constexpr uint32_t Value(WorkerId id) { return static_cast<uint32_t>(id); }
constexpr uint64_t Value(Incarnation id) { return static_cast<uint64_t>(id); }
constexpr uint64_t Value(Sequence id) { return static_cast<uint64_t>(id); }
constexpr uint64_t Value(Generation id) { return static_cast<uint64_t>(id); }
constexpr uint64_t Value(Version id) { return static_cast<uint64_t>(id); }
constexpr uint64_t Value(WorkerClock id) { return static_cast<uint64_t>(id); }
constexpr uint64_t Value(ViewNumber id) { return static_cast<uint64_t>(id); }
constexpr uint64_t Value(CallId id) { return static_cast<uint64_t>(id); }

constexpr Version Next(Version version) { return Version{Value(version) + 1}; }
constexpr Sequence Next(Sequence sequence) { return Sequence{Value(sequence) + 1}; }

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_BASE_IDS_H_
