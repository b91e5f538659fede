#ifndef SLIPSTREAM_WORKER_TRAINING_STATE_FILE_H_
#define SLIPSTREAM_WORKER_TRAINING_STATE_FILE_H_

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/kernels/rules/update_rule.h"
#include "common/layout/shard_map.h"
#include "common/layout/tensor_layout.h"
#include "common/protocol/shard_messages.h"
#include "common/settings/run_spec.h"

namespace slipstream {

/// The facts that say whose state a file holds, as names and values: run, worker, shard map (and
/// with it the model), algorithm, optimizer and codec. A file of another owner is refused.
using StateOwner = std::vector<std::pair<std::string, std::string>>;

/// Returns the facts of a member of a run.
StateOwner OwnerOf(const RunSpec& settings, const Identity& identity, const ShardMap& map);

/// The moment of a worker's state, between two of its pushes, and the numbers of the state that are
/// in no array.
struct StateMoment {
  /// The number of steps that the worker has taken, in this process and in those whose state it has
  /// taken up.
  uint64_t steps = 0;
  Incarnation incarnation{};

  /// The number of pushes that each shard has taken of the incarnation: the sequence of the last
  /// one. Where the push log has later ones, the state is older than the worker's last push.
  std::vector<uint64_t> pushes;

  /// When it was, in UTC, as "2026-11-27T19:31:05+00:00".
  std::string time;

  /// The numbers of the optimizer's rule.
  RuleScalars scalars = {};

  friend bool operator==(const StateMoment&, const StateMoment&) = default;
};

/// Returns directory/<run>/worker-<id>.safetensors.
std::string StatePath(const std::string& directory, const Identity& identity);

/// Writes the state of a worker as a model file (model_file.h), so other programs can read its
/// arrays. `values` are those of the arrays that `layout` names, one after another. The file is on
/// the disk when this returns, and replaces an older one as a whole. After a failure the older one
/// stays; the error is DATA_LOSS and names the path and the reason. REQUIRES: the directory exists.
absl::Status WriteStateFile(const std::string& path, const StateOwner& owner,
                            const StateMoment& moment, const TensorLayout& layout,
                            std::span<const float> values);

/// Reads the state of this owner into `values`, laid out as `layout`. Errors begin with the path.
/// NOT_FOUND: the file cannot be opened. DATA_LOSS: it is no sound state of a worker.
/// FAILED_PRECONDITION, naming the first difference: it is of another owner or another format.
/// INVALID_ARGUMENT: it has other arrays. After a failure `values` hold anything.
absl::StatusOr<StateMoment> ReadStateFile(const std::string& path, const StateOwner& owner,
                                          const TensorLayout& layout, std::span<float> values);

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_TRAINING_STATE_FILE_H_
