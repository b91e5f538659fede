#ifndef SLIPSTREAM_SERVER_DATA_PLANE_SHARD_SAVE_H_
#define SLIPSTREAM_SERVER_DATA_PLANE_SHARD_SAVE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/kernels/rules/update_rule.h"
#include "server/core/saved_version.h"
#include "server/core/shard/shard_state.h"
#include "server/storage/buffer_pool.h"

namespace slipstream {

/// Buffers for the arrays of a checkpoint, with their names, the weights first.
using ArrayBuffers = std::vector<std::pair<std::string, std::shared_ptr<FloatBuffer>>>;

/// The values of one version, and what the next update needs beside them.
struct SavedValues {
  /// The names of the arrays, the weights first, as TrainingState::ArrayNames has them, and the
  /// arrays, shared with the shard. No array changes while it is held here.
  std::vector<std::pair<std::string, Weights>> arrays;
  RuleScalars scalars{};
  uint64_t updates = 0;  // As TrainingState counts them.
};

/// A job that was ordered and of which the machine was not told yet that it is done.
struct UnfinishedJob {
  uint64_t payload_bytes = 0;
  std::optional<Version> version;  // The version that it makes; empty if it only folds.

  template <typename Archive, typename Self>
  static void Parts(Archive& archive, Self& self) {
    archive(self.payload_bytes, self.version);
  }
};

/// A shard at one moment: what a checkpoint holds.
struct ShardSave {
  ShardState state;
  SavedValues values;

  /// With a log: the weights of older versions that gradients on their way were computed from, or
  /// that were given to workers while the newest version was made, where staleness compensation
  /// needs them. They are arrays of the checkpoint, too.
  std::map<Version, Weights> bases;

  /// With a log: the jobs that were unfinished at that moment, in their order. The values are those
  /// after these jobs.
  std::vector<UnfinishedJob> unfinished;

  /// The number of the log's segment that begins with this state; 0 without a log.
  uint64_t log = 0;

  SavedVersion version() const {
    return {state.versions.generation(), state.versions.decided(), state.run.stage};
  }
};

/// Returns all of it but the arrays and the values of the bases, as bytes.
std::string EncodeSave(const ShardSave& save);

/// Does the reverse; the arrays are not filled in, and the weights of the bases are null. DATA_LOSS
/// if no shard saves such bytes.
absl::StatusOr<ShardSave> DecodeSave(std::string_view bytes);

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_DATA_PLANE_SHARD_SAVE_H_
