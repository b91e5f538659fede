#ifndef SLIPSTREAM_SERVER_SERVICE_VERSION_CHANGES_H_
#define SLIPSTREAM_SERVER_SERVICE_VERSION_CHANGES_H_

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "common/base/ids.h"
#include "common/base/mutex.h"
#include "common/protocol/shard_messages.h"

namespace slipstream {

/// What has changed from an older version to one, made when the first reader asks and kept for the
/// others, who mostly hold the same older version.
///
/// Thread-safe: guarded by its own mutex, which is held while the changes are made, for about 1 s
/// for each GB.
class VersionChanges {
 public:
  using Parts = std::shared_ptr<const std::vector<ValueChanges>>;

  /// Changes that take more than this share of the whole are not used: they cost more time than
  /// they save, and memory.
  static constexpr size_t kWholePerChangesMin = 4;

  /// Returns the changes from `base`, which has the values `from`, in the order of offsets; null if
  /// they are too many. `to` are the values of this version, the same in each call.
  Parts From(Version base, std::span<const float> from, std::span<const float> to);

 private:
  Mutex mutex_;
  std::optional<Version> base_ ABSL_GUARDED_BY(mutex_);
  Parts parts_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_SERVICE_VERSION_CHANGES_H_
