#ifndef SLIPSTREAM_SERVER_STORAGE_CHECKPOINT_PATHS_H_
#define SLIPSTREAM_SERVER_STORAGE_CHECKPOINT_PATHS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/ids.h"

namespace slipstream {

// The names of the directories of checkpoints,
// DIR/<run>/shard-<K>/checkpoint-<generation>-<version>, and of the segments of a shard's log
// beside them, DIR/<run>/shard-<K>/log-<number>.

/// A checkpoint of one shard, as its directory names it. Later generations are newer.
struct CheckpointName {
  Generation generation{};
  Version version{};

  friend auto operator<=>(const CheckpointName&, const CheckpointName&) = default;
};

/// The end of the name of a directory that a checkpoint is being written to, or removed from.
inline constexpr std::string_view kUnfinished = ".unfinished";

/// Returns "0123456789abcdef", "shard-3", "checkpoint-0-1200" and "log-7".
std::string RunDirectoryName(uint64_t run);
std::string ShardDirectoryName(ShardId shard);
std::string CheckpointDirectoryName(const CheckpointName& name);
std::string SegmentName(uint64_t number);

/// The reverse; nothing if `name` is no such name.
std::optional<uint64_t> ParseRunDirectoryName(std::string_view name);
std::optional<ShardId> ParseShardDirectoryName(std::string_view name);
std::optional<CheckpointName> ParseCheckpointDirectoryName(std::string_view name);
std::optional<uint64_t> ParseSegmentName(std::string_view name);

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_STORAGE_CHECKPOINT_PATHS_H_
