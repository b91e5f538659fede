#ifndef SLIPSTREAM_SERVER_STORAGE_CHECKPOINT_SET_H_
#define SLIPSTREAM_SERVER_STORAGE_CHECKPOINT_SET_H_

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/layout/tensor_layout.h"
#include "server/storage/checkpoint_folder.h"
#include "server/storage/checkpoint_listing.h"
#include "server/storage/disk.h"

namespace slipstream {

/// One checkpoint of each shard of a run, or of some of its shards. Values are read by their places
/// in the model, however many shards there are.
///
/// Failures are those of CheckpointFolder, and DATA_LOSS, naming what is missing, where values are
/// asked for that no checkpoint of the set has.
///
/// Not thread-safe: one owner.
class CheckpointSet {
 public:
  /// `chosen` are as ChooseForExport returns them, of one run, by shard. `disk` must outlive the
  /// set.
  static absl::StatusOr<CheckpointSet> Open(Disk& disk, std::vector<ListedCheckpoint> chosen);

  const std::vector<ListedCheckpoint>& checkpoints() const { return chosen_; }

  /// Returns the run's name, and "version 1200" or "versions 8,7 (shards 0 and up, the newest of
  /// each)".
  std::string RunText() const { return RunDirectoryName(chosen_.front().run); }
  std::string VersionText() const;

  /// Returns the whole model. Fails if the checkpoints of a shard are missing.
  absl::StatusOr<TensorLayout> JoinTensors() const;

  /// Describes for people where the tensors first differ from those of `model`. Empty if they are
  /// a part of it, or all of it.
  std::string DifferenceFrom(const TensorLayout& model) const;

  /// Fills the arrays with the values of a range of the model. FAILED_PRECONDITION if a checkpoint
  /// has no array of the name. After a failure the arrays hold anything. REQUIRES: each array has
  /// the size of the range.
  absl::Status ReadRange(const ParameterRange& range, std::span<const LoadedArray> arrays) const;

  /// Returns the encoded state of the checkpoint that has the first value of a range.
  absl::StatusOr<std::string> ReadStateOf(const ParameterRange& range) const;

  /// Returns the names of the arrays that the optimizer goes on from, the weights first.
  std::vector<std::string> ArrayNames() const;

 private:
  struct Part {
    CheckpointFolder folder;
    TensorLayout tensors;

    const ParameterRange& range() const { return folder.manifest().facts.range; }
  };

  CheckpointSet() = default;

  std::vector<ListedCheckpoint> chosen_;
  std::vector<Part> parts_;  // In the same order.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_STORAGE_CHECKPOINT_SET_H_
