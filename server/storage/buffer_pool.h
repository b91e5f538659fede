#ifndef SLIPSTREAM_SERVER_STORAGE_BUFFER_POOL_H_
#define SLIPSTREAM_SERVER_STORAGE_BUFFER_POOL_H_

#include <cstddef>
#include <memory>
#include <span>

namespace slipstream {

/// Values on a 64-byte boundary; contents are undefined until written.
class FloatBuffer {
 public:
  explicit FloatBuffer(size_t values);

  std::span<float> values() { return {values_.get(), size_}; }
  std::span<const float> values() const { return {values_.get(), size_}; }

 private:
  struct Free {
    void operator()(float* values) const;
  };
  size_t size_;
  std::unique_ptr<float[], Free> values_;
};

/// Weights of one published version. Owned by the shard for as long as the version is the newest,
/// and by every answer that is still being sent; the last one returns the buffer to its pool.
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

  /// A buffer that comes back by itself when its last owner lets go, also after the pool is gone.
  std::shared_ptr<FloatBuffer> Take();

  /// Buffers handed out and not yet back.
  size_t live() const;

 private:
  struct State;
  std::shared_ptr<State> state_;  // Owned by the pool and by every buffer handed out.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_STORAGE_BUFFER_POOL_H_
