#ifndef SLIPSTREAM_SERVER_SERVICE_SHARED_MEMORY_ROOM_H_
#define SLIPSTREAM_SERVER_SERVICE_SHARED_MEMORY_ROOM_H_

#include <cstddef>
#include <cstdint>
#include <map>

#include "absl/time/time.h"
#include "common/base/mutex.h"
#include "server/storage/buffer_pool.h"

namespace slipstream {

/// What the workers that reach a shard through shared memory take up there: windows for their
/// pushes, and versions that they are copying. Both are bounded, whatever a worker does.
///
/// Thread-safe: guarded by its own mutex.
class SharedMemoryRoom {
 public:
  /// All windows together, and one of them.
  static constexpr uint64_t kWindowBytesTotal = uint64_t{64} << 20;
  static constexpr uint64_t kWindowBytesMax = uint64_t{16} << 20;

  /// How large a window may be of which `asked` bytes were wanted; 0 if there is no room for a
  /// quarter of that. Given back by ReturnWindow. The fuller it gets the less is given, so that
  /// many get something.
  uint64_t GrantWindow(uint64_t asked);
  void ReturnWindow(uint64_t granted);

  /// Keeps `weights` as they are for a reader that has been told where they are, until it is done
  /// or its time is up. In place of what the reader had before; `reader` is only a name.
  void Pin(const void* reader, Weights weights, absl::Time until);

  /// Without effect if the reader has nothing.
  void Release(const void* reader);

  /// Takes from readers what they should have read by now.
  void Expire(absl::Time now);

  size_t pinned() const;

 private:
  struct Pinned {
    Weights weights;
    absl::Time until;
  };

  mutable Mutex mutex_;
  uint64_t window_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<const void*, Pinned> pins_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_SERVICE_SHARED_MEMORY_ROOM_H_
