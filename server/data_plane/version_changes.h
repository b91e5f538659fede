#ifndef SLIPSTREAM_SERVER_DATA_PLANE_VERSION_CHANGES_H_
#define SLIPSTREAM_SERVER_DATA_PLANE_VERSION_CHANGES_H_

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "common/base/ids.h"
#include "common/base/mutex.h"
#include "common/protocol/shard_messages.h"

namespace slipstream {

/// The changes from older versions to one, made when the first reader asks and kept for the
/// others, who mostly hold the same older version.
///
/// Thread-safe: guarded by its own mutex, which is held while changes are made, for about 1 s for
/// each GB. They are made once for each older version that is kept.
class VersionChanges {
 public:
  using Parts = std::shared_ptr<const std::vector<ValueChanges>>;

  /// All changes together take at most this share of the whole. More would cost more time than they
  /// save, and memory: whole values are sent then.
  static constexpr size_t kWholePerChangesMin = 4;

  /// Returns the changes from `base`, which has the values `from`, in the order of offsets; null if
  /// they are too many. `to` are the values of this version, the same in each call.
  Parts From(Version base, std::span<const float> from, std::span<const float> to);

  /// Returns changes that say of so many values that none has changed.
  static Parts None(size_t values);

 private:
  Mutex mutex_;
  std::map<Version, Parts> made_ ABSL_GUARDED_BY(mutex_);  // By base.
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_DATA_PLANE_VERSION_CHANGES_H_
