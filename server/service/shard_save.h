#ifndef SLIPSTREAM_SERVER_SERVICE_SHARD_SAVE_H_
#define SLIPSTREAM_SERVER_SERVICE_SHARD_SAVE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/kernels/rules/update_rule.h"
#include "server/core/saved_version.h"
#include "server/core/shard_state.h"
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

/// A shard at one moment: what a checkpoint holds.
struct ShardSave {
  ShardState state;
  SavedValues values;

  SavedVersion version() const { return {state.life, state.decided, state.stage}; }
};

/// Returns all of it but the arrays, as bytes.
std::string EncodeSave(const ShardSave& save);

/// Does the reverse; the arrays are not filled in. DATA_LOSS if no shard saves such bytes.
absl::StatusOr<ShardSave> DecodeSave(std::string_view bytes);

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_SERVICE_SHARD_SAVE_H_
