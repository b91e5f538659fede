#ifndef SLIPSTREAM_SERVER_DATA_PLANE_SHARD_JOB_H_
#define SLIPSTREAM_SERVER_DATA_PLANE_SHARD_JOB_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "absl/status/status.h"
#include "common/base/ids.h"
#include "common/layout/tensor_layout.h"
#include "server/data_plane/run_start.h"
#include "server/data_plane/shard_save.h"
#include "server/data_plane/training_state.h"
#include "server/storage/buffer_pool.h"

namespace slipstream {

/// How the shard reads the values that the run starts with, once the model is known.
struct StartOfShard {
  ReadRunStart read;
  TensorLayout layout;
  ParameterRange range;
  bool takes_optimizer_state = false;
};

/// One piece of work on a shard's values, and then what came of it. Whoever takes it from the shard
/// runs it without keeping other events waiting, and brings it back.
///
/// Not thread-safe: one owner.
class ShardJob {
 public:
  /// Puts the initial weights in place that a client has brought under a grant. With `start` the
  /// values of a checkpoint take their place.
  struct Initial {
    Weights weights;
    uint64_t grant = 0;
    const StartOfShard* start = nullptr;
  };

  /// Completes what is to be saved with the values of the newest version.
  using Save = std::shared_ptr<ShardSave>;

  /// An UnfinishedJob was done before the checkpoint from which another process goes on, which has
  /// its values. Nothing is left to do but to tell the core.
  using Work = std::variant<Initial, UpdateJob, Save, UnfinishedJob>;

  /// `state` and what the work refers to must outlive the job.
  ShardJob(TrainingState& state, Work work);

  bool is_initial() const { return std::holds_alternative<Initial>(work_); }

  /// The grant of the client that brought the weights. REQUIRES: is_initial().
  uint64_t grant() const { return std::get<Initial>(work_).grant; }
  bool was_done_before() const { return std::holds_alternative<UnfinishedJob>(work_); }

  /// Returns the save that it completes; null if it completes none.
  Save save() const;

  /// Returns whether it folds or updates.
  bool is_of_updates() const { return !is_initial() && save() == nullptr; }

  /// The payload bytes of the gradients that it consumes.
  uint64_t payload_bytes() const { return payload_bytes_; }

  /// The version that an update makes; nothing for initial weights, which are the core's first
  /// version.
  std::optional<Version> version() const { return version_; }

  /// Returns whether it makes weights: the initial ones, or those of an update.
  bool makes_weights() const { return version_.has_value() || is_initial(); }

  /// Returns whether it takes no longer than waking a thread: there is little to read, or a draft
  /// was made while the gradient came.
  bool is_short() const;

  /// Runs the job and frees its payloads. To be called once.
  void Run();

  struct Result {
    /// The new weights, if it makes any; they are null if the job was done before.
    std::optional<Weights> made;

    /// Why the checkpoint that the run was to start with could not be read.
    absl::Status failure;

    /// As RunStart::from; empty unless the run was started from a checkpoint.
    std::string started_from;
  };

  /// Has the result, for the owner to take, once the job was run.
  Result& result() { return result_; }

 private:
  absl::Status Start(const StartOfShard& start);

  TrainingState* state_;
  Work work_;
  uint64_t payload_bytes_ = 0;
  std::optional<Version> version_;
  Result result_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_DATA_PLANE_SHARD_JOB_H_
