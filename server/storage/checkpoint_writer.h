#ifndef SLIPSTREAM_SERVER_STORAGE_CHECKPOINT_WRITER_H_
#define SLIPSTREAM_SERVER_STORAGE_CHECKPOINT_WRITER_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "common/layout/tensor_layout.h"
#include "server/storage/checkpoint_manifest.h"
#include "server/storage/disk.h"

namespace slipstream {

/// An array to write, such as the weights or a state of the optimizer. The first one of a
/// checkpoint is "weights".
struct CheckpointArray {
  std::string name;
  std::span<const float> values;
};

/// Writes a checkpoint's files into the empty directory `folder`, straight from where the values
/// lie, and syncs each; the manifest is the last. `tensors` name the values of the first array.
/// The caller syncs the directory. Returns the bytes of the files. Failures are those of Disk; some
/// of the files may be there then. REQUIRES: the first array is "weights" and has
/// tensors.parameters() == facts.range.size() values.
absl::StatusOr<uint64_t> WriteCheckpoint(Disk& disk, const std::string& folder,
                                         const CheckpointFacts& facts, const TensorLayout& tensors,
                                         std::string_view state,
                                         std::span<const CheckpointArray> arrays);

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_STORAGE_CHECKPOINT_WRITER_H_
