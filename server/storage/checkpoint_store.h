#ifndef SLIPSTREAM_SERVER_STORAGE_CHECKPOINT_STORE_H_
#define SLIPSTREAM_SERVER_STORAGE_CHECKPOINT_STORE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/base/mutex.h"
#include "common/layout/tensor_layout.h"
#include "server/core/saved_version.h"
#include "server/storage/checkpoint_folder.h"
#include "server/storage/checkpoint_paths.h"
#include "server/storage/checkpoint_writer.h"
#include "server/storage/disk.h"

namespace slipstream {

/// The checkpoints of one shard, each in a directory of its own. A checkpoint is written under an
/// unfinished name, synced, and only then gets its own, so whatever has the name of a checkpoint is
/// complete, also after a crash. One that is removed loses its name first.
///
/// Failures are those of Disk and name a path. A damaged checkpoint stays where it is until newer
/// ones take its place, but saved() does not offer it.
///
/// saved(), LogOf() and BytesOf() may be called by any thread at any time. All other calls may do
/// I/O, and come one at a time.
class CheckpointStore {
 public:
  /// Makes and locks directory/<run>/shard-<K>, and removes what a crash has left unfinished there,
  /// as far as the disk lets it. If the run has begun, an earlier process has made the directory:
  /// NOT_FOUND if it is not there, for instance because its disk is not mounted. RESOURCE_EXHAUSTED
  /// if another process has it; FAILED_PRECONDITION if it has a checkpoint in a format that this
  /// program does not read. `disk` must outlive the store.
  static absl::StatusOr<std::unique_ptr<CheckpointStore>> Open(Disk& disk,
                                                               const std::string& directory,
                                                               uint64_t run, ShardId shard,
                                                               bool has_begun = false);

  /// Returns the checkpoints that the shard could go on from, oldest first.
  std::vector<SavedVersion> saved() const;

  /// Returns the number of the log's segment that begins with a checkpoint; 0 without a log, or if
  /// saved() does not have it.
  uint64_t LogOf(const SavedVersion& which) const;

  /// The directory of this shard's checkpoints, where its log is, too, and the disk that has it.
  const std::string& directory() const { return directory_; }
  Disk& disk() const { return disk_; }

  /// Returns how large the files of a checkpoint are; nothing if saved() does not have it.
  std::optional<uint64_t> BytesOf(const SavedVersion& which) const;

  /// Makes a checkpoint, straight from where the values lie; it is on the disk when this returns
  /// OK. One of this generation and version, which may be damaged or made of other initial weights,
  /// is removed first. After a failure the others are as they were, and a later call may succeed.
  /// `tensors` are the shard's part of the model (PartOf), for the model file. REQUIRES: the facts
  /// are of this store's run and shard, and the first array is "weights" with tensors.parameters()
  /// == facts.range.size() values.
  absl::Status Save(const CheckpointFacts& facts, const TensorLayout& tensors,
                    std::string_view state, std::span<const CheckpointArray> arrays);

  /// Calls `read` with a checkpoint's directory, and returns its result. NOT_FOUND if the
  /// checkpoint is not there. If this fails with DATA_LOSS, saved() does not offer the checkpoint
  /// any more.
  absl::Status Load(const SavedVersion& which,
                    const std::function<absl::Status(const CheckpointFolder&)>& read);

  /// Removes old checkpoints. The newest `keep` stay, and so do `safe` and all that are newer.
  /// Removes the log's segments before the one of the oldest checkpoint that stays and is offered:
  /// if the newer ones are damaged, the shard goes on from there. Returns the first failure, and
  /// removes whatever else it can.
  absl::Status Prune(uint32_t keep, const std::optional<SavedVersion>& safe);

  /// Removes the checkpoints that are newer than `from`: those of a generation that the shard has
  /// abandoned.
  absl::Status RemoveAfter(const SavedVersion& from);

 private:
  struct Kept {
    uint32_t stage = 0;
    uint64_t bytes = 0;
    uint64_t log = 0;
    bool is_sound = false;
  };

  CheckpointStore(Disk& disk, std::string directory, uint64_t run, ShardId shard)
      : disk_(disk), directory_(std::move(directory)), run_(run), shard_(shard) {}

  static CheckpointName NameOf(const SavedVersion& saved) {
    return {.generation = saved.generation, .version = saved.version};
  }
  std::string PathOf(const CheckpointName& name) const {
    return directory_ + "/" + CheckpointDirectoryName(name);
  }
  std::string UnfinishedPathOf(const CheckpointName& name) const {
    return PathOf(name) + std::string(kUnfinished);
  }

  /// Finds the checkpoints of earlier processes.
  absl::Status FindKept();

  absl::StatusOr<CheckpointFolder> OpenFolder(const CheckpointName& name) {
    return CheckpointFolder::OpenAt(disk_, PathOf(name), run_, shard_, name);
  }

  // These remove all that they can, and return the first failure.

  /// Removes the directories with unfinished names.
  absl::Status RemoveLeftovers();

  /// Removes a directory with an unfinished name, if it is there.
  absl::Status RemoveUnfinished(const std::string& path);

  /// Removes a directory and all that it has, if it is there.
  absl::Status RemoveFolder(const std::string& path);

  /// Takes the checkpoints' names away, and removes their files.
  absl::Status RemoveCheckpoints(const std::vector<CheckpointName>& names);

  /// Returns whether a checkpoint, sound or not, has the name.
  bool IsThere(const CheckpointName& name) const;

  /// Removes the log's segments that no checkpoint needs.
  absl::Status PruneLog();

  /// Writes a checkpoint, and gives it its name last. Returns the bytes of its files.
  absl::StatusOr<uint64_t> WriteAndName(const CheckpointFacts& facts, const TensorLayout& tensors,
                                        std::string_view state,
                                        std::span<const CheckpointArray> arrays);

  /// Gives a new checkpoint its name.
  absl::Status GiveName(const CheckpointName& name);

  // Constant after construction.
  Disk& disk_;
  const std::string directory_;
  const uint64_t run_;
  const ShardId shard_;
  std::unique_ptr<DiskLock> lock_;

  mutable Mutex mutex_;
  std::map<CheckpointName, Kept> kept_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_STORAGE_CHECKPOINT_STORE_H_
