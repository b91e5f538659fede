#ifndef SLIPSTREAM_SERVER_STORAGE_CHECKPOINT_LISTING_H_
#define SLIPSTREAM_SERVER_STORAGE_CHECKPOINT_LISTING_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "server/storage/checkpoint_manifest.h"
#include "server/storage/checkpoint_paths.h"
#include "server/storage/disk.h"

namespace slipstream {

/// A checkpoint below a directory that a user has named. Its run, shard and name are those that
/// the directories have.
struct ListedCheckpoint {
  std::string path;
  uint64_t run = 0;
  ShardId shard{};
  CheckpointName name;

  /// Why it is of no use; OK if its manifest is sound and of the same run, shard and name, and its
  /// files have their sizes. What the files hold has not been read.
  absl::Status state;

  /// The manifest; set if `state` is OK.
  std::optional<CheckpointManifest> manifest;

  /// Set if every shard of the run that has checkpoints here has this one, and it is of use.
  bool is_on_all_shards = false;
};

/// Returns the checkpoints in `directory` and below, by run, then shard, the oldest first. It may
/// be a run's durability.directory, the directory of a run or of a shard, or a checkpoint.
/// NOT_FOUND if it has none. Fails with the disk's error if it, or the directory of a run or shard
/// in it, cannot be read. Servers may be writing meanwhile.
absl::StatusOr<std::vector<ListedCheckpoint>> ListCheckpoints(Disk& disk,
                                                              const std::string& directory);

/// Chooses one checkpoint of each shard for an export: the newest that all shards have, or if every
/// shard has a newer one than that, each shard's newest. (Shards that do not save together have
/// version 0 in common, and other versions by chance.) With `version`, only those of that version
/// count; those that are of no use never do. INVALID_ARGUMENT if there are several runs, NOT_FOUND
/// if a shard has no such checkpoint.
absl::StatusOr<std::vector<ListedCheckpoint>> ChooseForExport(
    const std::vector<ListedCheckpoint>& listed, std::optional<uint64_t> version);

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_STORAGE_CHECKPOINT_LISTING_H_
