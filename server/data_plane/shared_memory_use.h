#ifndef SLIPSTREAM_SERVER_DATA_PLANE_SHARED_MEMORY_USE_H_
#define SLIPSTREAM_SERVER_DATA_PLANE_SHARED_MEMORY_USE_H_

#include <cstddef>
#include <cstdint>
#include <map>

#include "absl/time/time.h"
#include "common/base/mutex.h"
#include "server/storage/buffer_pool.h"

namespace slipstream {

/// Bounds what the workers that reach a shard through shared memory take up there, whatever they
/// do: pages of their arenas that stay mapped, and versions that they are copying.
///
/// Thread-safe: guarded by its own mutex.
class SharedMemoryUse {
 public:
  /// The most bytes of such pages, all together.
  static constexpr uint64_t kKeptBytesMax = uint64_t{32} << 20;

  /// Returns whether the pages of an arena of so many bytes may stay mapped once they were copied.
  /// If so, GiveBack has to give the bytes back.
  bool Keep(uint64_t bytes);
  void GiveBack(uint64_t bytes);

  /// Keeps `weights` as they are for a reader that has been told where they are, until it is done
  /// or its time is up. They replace the reader's weights from before. `reader` is only a name.
  void Pin(const void* reader, Weights weights, absl::Time until);

  /// Releases the reader's weights. Has no effect if it has none.
  void Release(const void* reader);

  /// Releases the weights of readers whose time is up.
  void Expire(absl::Time now);

  size_t pinned() const;

 private:
  struct Pinned {
    Weights weights;
    absl::Time until;
  };

  mutable Mutex mutex_;
  uint64_t kept_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<const void*, Pinned> pins_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_DATA_PLANE_SHARED_MEMORY_USE_H_
