#ifndef SLIPSTREAM_SERVER_DATA_PLANE_SHARD_RECOVERY_H_
#define SLIPSTREAM_SERVER_DATA_PLANE_SHARD_RECOVERY_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "server/core/orders.h"
#include "server/core/saved_version.h"
#include "server/data_plane/shard.h"
#include "server/data_plane/shard_save.h"
#include "server/data_plane/training_state.h"
#include "server/storage/checkpoint_folder.h"
#include "server/storage/checkpoint_store.h"
#include "server/storage/disk.h"

namespace slipstream {

/// Names what does not fit in what was read; empty if all fits. Null where nobody asks.
using CheckSave = std::function<std::string(const ShardSave& saved)>;

/// Fills `arrays`, which are those of Shard::NewArrays, from a checkpoint, and returns the rest of
/// it. The weights of its bases are in buffers of `state`, which made the arrays. DATA_LOSS, naming
/// the file and the place, if the checkpoint is damaged; FAILED_PRECONDITION if a later release
/// wrote it, if it has no such arrays, or, naming the file, if `check` finds what does
/// not fit; UNAVAILABLE if there is not enough memory. After a failure the arrays hold anything.
/// Takes as long as the disk does. Thread-safe, if nobody else uses the arrays.
absl::StatusOr<ShardSave> LoadCheckpoint(const CheckpointFolder& from, const ArrayBuffers& arrays,
                                         TrainingState& state, const CheckSave& check = nullptr);

/// Does the same with one of the store's checkpoints. If it is damaged, the store does not offer it
/// any more. NOT_FOUND if it is not there.
absl::StatusOr<ShardSave> LoadCheckpoint(CheckpointStore& store, const SavedVersion& which,
                                         const ArrayBuffers& arrays, TrainingState& state,
                                         const CheckSave& check = nullptr);

/// Returns the check of a save for this shard, whose NewArrays made `arrays`. Both must outlive it.
CheckSave CheckFor(const Shard& shard, const ArrayBuffers& arrays);

/// The log of a shard, as RedoLog has found it.
struct RedoneLog {
  uint64_t events = 0;

  /// The newest segment that was read.
  uint64_t last_segment = 0;

  /// The bytes at its end that a crash has left of events of which nobody was told.
  uint64_t torn_bytes = 0;
};

/// Tells the shard the events of the log in `directory`, from segment `first` on up to the end, or
/// to the beginning of segment `until` if that is not 0. An event at the end whose records are not
/// all there was never told to anybody, and is left out. The files stay as they are.
///
/// DATA_LOSS with file and position if the log is damaged, or has events that no shard in this
/// state records; FAILED_PRECONDITION if a later release wrote it. The shard's state
/// has no meaning then. Takes as long as the updates in the log do. REQUIRES: BeginRedo was called;
/// EndRedo has to follow.
absl::StatusOr<RedoneLog> RedoLog(Disk& disk, const std::string& directory, uint64_t first,
                                  uint64_t until, Shard& shard);

/// The state from which a shard has gone on.
struct RecoveredShard {
  /// The checkpoint, and the log behind it.
  SavedVersion from;
  RedoneLog log;

  /// The newest segment that the directory has, now that the tail is cut off.
  uint64_t last_segment = 0;
};

/// Brings a new shard to the state that an earlier process has left in its directory: takes the
/// newest checkpoint that is sound, redoes the log behind it, and cuts off what a crash has torn.
/// Says in the process's log how far it is. A new segment, and EndRedo, have to follow.
///
/// Fails as RedoLog does, or as LoadCheckpoint if no checkpoint is sound; CANCELLED once
/// `is_stopping` returns true; UNAVAILABLE if the tail cannot be cut off. If the shard has no
/// memory for the model, its failure() says so. REQUIRES: the store offers a checkpoint; nothing
/// was told to the shard before, and nothing is being written to the directory.
absl::StatusOr<RecoveredShard> RecoverShard(CheckpointStore& store, const ModelOrders& model,
                                            Shard& shard, const std::function<bool()>& is_stopping);

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_DATA_PLANE_SHARD_RECOVERY_H_
