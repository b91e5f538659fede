#ifndef SLIPSTREAM_SERVER_DATA_PLANE_RUN_START_H_
#define SLIPSTREAM_SERVER_DATA_PLANE_RUN_START_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "common/kernels/rules/update_rule.h"
#include "common/layout/tensor_layout.h"
#include "common/settings/run_spec.h"
#include "server/data_plane/shard_save.h"
#include "server/storage/disk.h"

namespace slipstream {

/// The numbers that a shard begins with beside its arrays, if its run starts from a checkpoint.
struct RunStart {
  // Used if the optimizer goes on from its state: as in SavedValues.
  RuleScalars scalars{};
  uint64_t updates = 0;

  /// The run and the version, such as "run 00c0ffee00c0ffee, version 1200".
  std::string from;
};

/// Fills the arrays with the values of a shard, whose part of the model is `range`: those of
/// TrainingState::NewArrays, or the weights alone. Where several old shards have parts of the
/// range, the numbers are those of the first. Takes as long as the disk does.
using ReadRunStart = std::function<absl::StatusOr<RunStart>(
    const TensorLayout& layout, const ParameterRange& range, const ArrayBuffers& arrays)>;

/// Returns what reads the newest checkpoint below `start.checkpoint`. It returns INVALID_ARGUMENT,
/// naming the tensor, if that is of another model; FAILED_PRECONDITION, naming the array, if it
/// lacks an array; DATA_LOSS if shards are missing where several checkpoints could be chosen; and
/// the failures of ListCheckpoints, ChooseForExport and CheckpointSet. `disk` must outlive it.
ReadRunStart ReaderOf(Disk& disk, const StartSpec& start);

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_DATA_PLANE_RUN_START_H_
