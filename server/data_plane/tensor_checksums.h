#ifndef SLIPSTREAM_SERVER_DATA_PLANE_TENSOR_CHECKSUMS_H_
#define SLIPSTREAM_SERVER_DATA_PLANE_TENSOR_CHECKSUMS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "common/base/mutex.h"
#include "common/layout/tensor_layout.h"

namespace slipstream {

/// The checksums of one version's tensors, or of the parts of them that a shard has. They are
/// computed once, when the first reader asks, since most versions have no reader.
///
/// Thread-safe: guarded by its own mutex, which is held while they are computed, for about 0.1 s
/// for each GB.
class TensorChecksums {
 public:
  static constexpr size_t kTensorsMax = 16'384;
  using Tensors = std::shared_ptr<const std::vector<ParameterRange>>;

  /// `tensors`: the tensors as ranges of the shard's values.
  explicit TensorChecksums(Tensors tensors) : tensors_(std::move(tensors)) {}

  /// Returns ValuesChecksum of each tensor, or nothing if these are too many for a message.
  /// `values` are those of the version, the same in each call.
  std::vector<uint64_t> Of(std::span<const float> values);

 private:
  const Tensors tensors_;
  Mutex mutex_;
  std::optional<std::vector<uint64_t>> checksums_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_DATA_PLANE_TENSOR_CHECKSUMS_H_
