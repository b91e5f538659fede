#ifndef SLIPSTREAM_SERVER_STORAGE_BUFFER_POOL_H_
#define SLIPSTREAM_SERVER_STORAGE_BUFFER_POOL_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "common/files/file_descriptor.h"
#include "common/local/shared_memory.h"

namespace slipstream {

/// How processes of this machine reach the values of a buffer, see common/local/shared_values.h.
struct SharedBuffer {
  SharedMemory memory;

  /// Of all shared buffers of this process, never used again.
  uint64_t number = 0;

  /// Of the values that it holds now, or that are being written.
  uint64_t generation = 0;
};

/// Values on a page boundary, zero at first. The pages come from the kernel and go back to it: a
/// heap that never shrinks would keep the largest blocks there are, in the arena of whichever
/// thread let go of them.
class FloatBuffer {
 public:
  /// Nothing if the memory cannot be had. Pages that were never written take up none.
  static std::unique_ptr<FloatBuffer> TryMake(size_t values);

  /// The same, in memory that readers on this machine can map.
  static std::unique_ptr<FloatBuffer> TryMakeShared(size_t values);

  ~FloatBuffer();
  FloatBuffer(const FloatBuffer&) = delete;
  FloatBuffer& operator=(const FloatBuffer&) = delete;

  std::span<float> values() { return {values_, size_}; }
  std::span<const float> values() const { return {values_, size_}; }

  /// Null unless made so. Owned by the buffer alone; a weak pointer tells others when it is gone.
  std::shared_ptr<const SharedBuffer> shared() const { return shared_; }

  /// Other values will be written: whoever still reads the present ones is told by the generation.
  void BeginNext();

 private:
  FloatBuffer(float* values, size_t size) : values_(values), size_(size) {}
  FloatBuffer(std::shared_ptr<SharedBuffer> shared, size_t size);

  const std::shared_ptr<SharedBuffer> shared_;
  float* const values_;
  const size_t size_;
};

/// Weights of one published version. Owned by the shard for as long as the version is the newest or
/// a gradient on its way needs it as its base, and by every answer that is still being sent; the
/// last one returns the buffer to its pool.
using Weights = std::shared_ptr<const FloatBuffer>;

/// Buffers of one size, used again instead of freed: a shard makes a new version with every update,
/// and getting its pages from the kernel each time would cost more than the update.
///
/// Thread-safe: guarded by its own mutex; never blocks on I/O.
class BufferPool {
 public:
  /// Idle buffers beyond this many are freed.
  static constexpr size_t kIdleMax = 4;

  explicit BufferPool(size_t values);

  /// Has so many buffers idle. False if the memory cannot be had.
  bool Reserve(size_t buffers);

  /// A buffer that comes back by itself when its last owner lets go, also after the pool is gone;
  /// what it holds is undefined. REQUIRES: the address space is there, as Reserve found.
  std::shared_ptr<FloatBuffer> Take();

  /// The same, or null if that would take long: shared memory is written when it is made.
  std::shared_ptr<FloatBuffer> TakeAtOnce();

  /// From now on buffers are made in shared memory, until that cannot be had; those that are not
  /// are freed as they come back.
  void Share();

  /// Buffers handed out and not yet back.
  size_t live() const;

 private:
  struct State;

  /// Null if none is idle.
  std::unique_ptr<FloatBuffer> TakeIdle();
  std::shared_ptr<FloatBuffer> Lend(std::unique_ptr<FloatBuffer> buffer);
  bool shares() const;
  void StopSharing();

  std::shared_ptr<State> state_;  // Owned by the pool and by every buffer handed out.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_STORAGE_BUFFER_POOL_H_
