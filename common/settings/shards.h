#ifndef SLIPSTREAM_COMMON_SETTINGS_SHARDS_H_
#define SLIPSTREAM_COMMON_SETTINGS_SHARDS_H_

#include <cstdint>
#include <string>

#include "common/layout/shard_map.h"
#include "common/settings/run_spec.h"

namespace slipstream {

// Functions about how a run's model is cut into shards, and how much memory a shard takes.

/// Returns how the rule that servers follow wants the model cut.
inline CutOptions CutOptionsOf(const RunSpec& run) {
  return {.keeps_tensors_whole = RowOf(run.server_optimizer().kind).measures_tensors};
}

/// Returns how many gradients the workers of a run may have under way, λ·d.
uint64_t GradientsUnderWay(const RunSpec& run);

/// The number of versions that may be kept as bases of one gradient under way, if compensation uses
/// base weights: only when the gradient arrives is it known which of them it was computed from.
inline constexpr uint32_t kBasesOfSlotMax = 3;

/// Returns how many versions, besides a few, are kept for use again when nobody reads them: one for
/// each of `workers`, since as many answers may be under way at once, in 256 MiB at most.
uint64_t VersionsReused(uint64_t values, uint32_t workers);

/// Returns the bytes that a shard of `values` values takes at its peak: two versions of the
/// weights; if more than the newest is kept for readers, the others and three more; for each
/// gradient under way either a push or a version that is read, or its bases, or a push and its
/// base; for each worker with free lanes a version that is read besides; the optimizer's state
/// twice; if checkpoints are made, a version and its state once more, as one that is written holds
/// them; if a log is kept, for each gradient under way a push beside the version that answers it,
/// as both wait for the disk, and its bases once more, as a checkpoint holds them; VersionsReused;
/// and a fixed part. Saturates.
uint64_t ShardBytesNeeded(uint64_t values, const RunSpec& run);

/// Returns how many workers can have gradients under way if a shard of `values` values takes no
/// more than `bytes`; at most kWorkersMax.
uint32_t MembersWithin(uint64_t bytes, uint64_t values, const RunSpec& run);

/// Returns the part of ShardBytesNeeded that the pushes of all gradients under way take. Saturates.
uint64_t ShardPushBytes(uint64_t values, const RunSpec& run);

/// Returns text such as "41.2 GiB".
std::string BytesText(uint64_t bytes);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_SETTINGS_SHARDS_H_
