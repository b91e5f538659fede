#ifndef SLIPSTREAM_SERVER_DATA_PLANE_CHECKPOINT_REPLAY_H_
#define SLIPSTREAM_SERVER_DATA_PLANE_CHECKPOINT_REPLAY_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/settings/run_spec.h"
#include "server/core/orders.h"
#include "server/storage/checkpoint_folder.h"
#include "server/storage/disk.h"

namespace slipstream {

/// A shard that has kept a log, as its run knows it.
struct LoggedShard {
  ShardId shard{};

  /// The settings that the run was started with, and the model that its clients named.
  RunSpec run;
  ModelOrders model;

  /// The directory of the shard's checkpoints, where its log is, too.
  std::string directory;
};

/// The log behind one checkpoint, redone.
struct ReplayedLog {
  uint64_t events = 0;

  /// The version that the shard had decided at the end.
  Version version{};

  /// Describes for people where the result first differs from the next checkpoint. Empty if all
  /// values and the state are equal, bit by bit, or if there was nothing to compare with.
  std::string difference;
};

/// Makes a shard of the checkpoint `from`, and tells it the events of its log: up to the beginning
/// of checkpoint `to`, with which the result is compared, or up to the end of the log if that is
/// null. Changes no file, and takes no lock, so a server may be writing the log meanwhile; it needs
/// the memory of one shard and, with `to`, of a checkpoint beside.
///
/// DATA_LOSS with file and position if the log is damaged. FAILED_PRECONDITION if the checkpoint
/// was made without a log, or does not fit the run, or if a later release wrote any
/// of this. RESOURCE_EXHAUSTED if there is not enough memory. Takes as long as the updates do.
absl::StatusOr<ReplayedLog> ReplayLog(Disk& disk, const LoggedShard& logged,
                                      const CheckpointFolder& from, const CheckpointFolder* to);

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_DATA_PLANE_CHECKPOINT_REPLAY_H_
