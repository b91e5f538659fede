#ifndef SLIPSTREAM_SERVER_SERVICE_SHARED_MEMORY_ROOM_H_
#define SLIPSTREAM_SERVER_SERVICE_SHARED_MEMORY_ROOM_H_

#include <cstddef>
#include <cstdint>
#include <map>

#include "absl/time/time.h"
#include "common/base/mutex.h"
#include "server/storage/buffer_pool.h"

namespace slipstream {

/// What the workers that reach a shard through shared memory take up there: pages of their arenas
/// that stay mapped, and versions that they are copying. Both are bounded, whatever a worker does.
///
/// Thread-safe: guarded by its own mutex.
class SharedMemoryRoom {
 public:
  /// All such pages together.
  static constexpr uint64_t kKeptBytesMax = uint64_t{32} << 20;

  /// Whether pages of an arena of so many bytes are to stay mapped once they were copied. Then the
  /// bytes are given back by GiveBack.
  bool Keep(uint64_t bytes);
  void GiveBack(uint64_t bytes);

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
  uint64_t kept_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<const void*, Pinned> pins_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_SERVICE_SHARED_MEMORY_ROOM_H_
