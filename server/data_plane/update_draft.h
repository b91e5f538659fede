#ifndef SLIPSTREAM_SERVER_DATA_PLANE_UPDATE_DRAFT_H_
#define SLIPSTREAM_SERVER_DATA_PLANE_UPDATE_DRAFT_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

#include "common/base/mutex.h"
#include "common/kernels/segments.h"
#include "server/core/shard/shard_output.h"
#include "server/data_plane/update_range.h"

namespace slipstream {

/// An update that is made while its gradient is still arriving, chunk by chunk, as the core
/// forecast it. A chunk that has just come is read again while the cache holds it, and when the
/// push is complete, so is the next version.
///
/// Nobody sees anything of a draft before the core has decided about the complete push, and it is
/// used only if the decision is the one that was forecast. Until then it can be thrown away at any
/// time, as versions and optimizer state are written out of place.
///
/// Thread-safe: guarded by its own mutex, which is held for one chunk's pass.
class UpdateDraft {
 public:
  UpdateDraft(std::shared_ptr<const TensorRules> rules, const Forecast& forecast,
              UpdateBuffers buffers)
      : rules_(std::move(rules)), forecast_(forecast), buffers_(std::move(buffers)) {}

  /// Takes the gradient's values from position `begin` on. REQUIRES: none of them came before, and
  /// all are within the shard. Has no effect on a draft that was cancelled.
  void Add(size_t begin, const Segments& values);

  /// Releases all buffers. Nobody writes to them afterwards.
  void Cancel();

  /// Returns whether it has seen all values and can be taken.
  bool IsComplete();

  /// Returns the buffers of a complete draft, which no longer owns them; nothing if it was
  /// cancelled or values are missing.
  std::optional<UpdateBuffers> Take();

 private:
  bool HasAll() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::shared_ptr<const TensorRules> rules_;
  const Forecast forecast_;

  Mutex mutex_;
  std::optional<UpdateBuffers> buffers_ ABSL_GUARDED_BY(mutex_);  // Absent once released.
  size_t values_made_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_DATA_PLANE_UPDATE_DRAFT_H_
