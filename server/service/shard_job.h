#ifndef SLIPSTREAM_SERVER_SERVICE_SHARD_JOB_H_
#define SLIPSTREAM_SERVER_SERVICE_SHARD_JOB_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "common/base/ids.h"
#include "server/service/training_state.h"
#include "server/storage/buffer_pool.h"

namespace slipstream {

/// One piece of work on a shard's values: the initial weights, or the folds and the update that the
/// core ordered in one decision, or a look at them for a checkpoint. Its owner, which may be a
/// simulated shard, asks which version it makes, runs it, and then tells the core.
struct ShardJob {
  std::optional<Weights> initial;
  uint64_t grant = 0;  // The grant of the client that brought them.
  UpdateJob work;

  /// Set if the job only completes what is to be saved, with the values of the newest version.
  std::shared_ptr<ShardSave> save = nullptr;

  /// Set if the job was done before the checkpoint from which another process goes on, which has
  /// its values. Nothing is left to do but to tell the core.
  std::optional<UnfinishedJob> done = std::nullopt;

  /// Returns whether it folds or updates, rather than putting initial weights in place or saving.
  bool is_of_updates() const { return !initial.has_value() && save == nullptr; }

  /// Returns the payload bytes of the gradients that it consumes.
  uint64_t payload_bytes() const;

  /// Returns the version that an update makes; nothing for initial weights, which are the core's
  /// first version.
  std::optional<Version> version() const;

  /// Returns whether it takes no longer than waking a thread: there is little to read, or a draft
  /// was made while the gradient came.
  bool is_short() const;

  /// Runs the job and frees its payloads. Returns the new weights, if it makes any; they are null
  /// if the job was done before.
  std::optional<Weights> Run(TrainingState& state) &&;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_SERVICE_SHARD_JOB_H_
