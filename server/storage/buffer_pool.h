#ifndef SLIPSTREAM_SERVER_STORAGE_BUFFER_POOL_H_
#define SLIPSTREAM_SERVER_STORAGE_BUFFER_POOL_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "common/files/file_descriptor.h"
#include "common/local/shared_memory.h"

namespace slipstream {

/// The shared memory by which processes of this machine reach the values of a buffer; see
/// common/local/shared_values.h.
struct SharedBuffer {
  SharedMemory memory;

  /// Numbers the shared buffers of this process; never used again.
  uint64_t number = 0;

  /// The filling of the values that the buffer holds now, or that are being written.
  uint64_t filling = 0;
};

/// Values on a page boundary, zero at first. The pages come from the kernel and go back to it: a
/// heap that never shrinks would keep these blocks, the largest there are, in the arena of the
/// thread that freed them.
class FloatBuffer {
 public:
  /// Returns null if there is not enough memory. Pages that were never written take up none.
  static std::unique_ptr<FloatBuffer> TryMake(size_t values);

  /// Does the same, in memory that readers on this machine can map.
  static std::unique_ptr<FloatBuffer> TryMakeShared(size_t values);

  ~FloatBuffer();
  FloatBuffer(const FloatBuffer&) = delete;
  FloatBuffer& operator=(const FloatBuffer&) = delete;

  std::span<float> values() { return {values_, size_}; }
  std::span<const float> values() const { return {values_, size_}; }

  /// The shared memory; null unless made by TryMakeShared. Owned by the buffer alone; a weak
  /// pointer tells others when it is gone.
  std::shared_ptr<const SharedBuffer> shared() const { return shared_; }

  /// Notes that other values will be written. The filling tells whoever still reads the present
  /// ones.
  void BeginNext();

 private:
  FloatBuffer(float* values, size_t size) : values_(values), size_(size) {}
  FloatBuffer(std::shared_ptr<SharedBuffer> shared, size_t size);

  const std::shared_ptr<SharedBuffer> shared_;
  float* const values_;
  const size_t size_;
};

/// The weights of one published version. They are owned by the shard for as long as the version is
/// the newest, is kept for readers, or is the base that a gradient on its way needs, and by every
/// answer that is still being sent. The last owner returns the buffer to its pool.
using Weights = std::shared_ptr<const FloatBuffer>;

/// A pool of buffers of one size, which are used again instead of freed: a shard makes a new
/// version with every update, and getting its pages from the kernel each time would cost more than
/// the update.
///
/// Thread-safe: guarded by its own mutex; never blocks on I/O.
class BufferPool {
 public:
  /// Idle buffers beyond this many are freed, unless KeepIdle asks for more.
  static constexpr size_t kIdleMax = 4;

  explicit BufferPool(size_t values);

  /// Keeps up to kIdleMax + `more` idle buffers from now on. Where many readers hold a version
  /// each, as many come back and are taken again. Thread-safe.
  void KeepIdle(size_t more);

  /// Makes buffers until so many are idle. Returns false if there is not enough memory.
  bool Reserve(size_t buffers);

  /// Returns a buffer that comes back by itself when its last owner releases it, also after the
  /// pool is gone. Its contents are undefined. Without memory for it the program ends.
  std::shared_ptr<FloatBuffer> Take();

  /// Does the same, or returns null if there is not enough memory.
  std::shared_ptr<FloatBuffer> TryTake();

  /// Does the same as Take, or returns null if that would take long: shared memory is written when
  /// it is made.
  std::shared_ptr<FloatBuffer> TakeAtOnce();

  /// Makes buffers in shared memory from now on, until there is no more. Other buffers are freed as
  /// they come back.
  void Share();

  /// The number of buffers handed out and not yet back.
  size_t live() const;

 private:
  struct State;

  /// Returns null if no buffer is idle.
  std::unique_ptr<FloatBuffer> TakeIdle();
  std::shared_ptr<FloatBuffer> Lend(std::unique_ptr<FloatBuffer> buffer);
  bool shares() const;
  void StopSharing();

  std::shared_ptr<State> state_;  // Owned by the pool and by every buffer handed out.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_STORAGE_BUFFER_POOL_H_
