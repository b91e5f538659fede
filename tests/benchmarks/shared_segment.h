#ifndef SLIPSTREAM_TESTS_BENCHMARKS_SHARED_SEGMENT_H_
#define SLIPSTREAM_TESTS_BENCHMARKS_SHARED_SEGMENT_H_

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "common/files/file_descriptor.h"

namespace slipstream::benchmarks {

/// A number in shared memory that one thread raises and one thread of another process waits for. It
/// may wrap around: a target is at most 2^31 ahead.
class alignas(64) SharedCount {
 public:
  /// Adds one, and wakes the other thread if its target is reached.
  void Raise();

  /// Waits until the number has reached `target`. Returns false if that takes longer than
  /// `timeout`. Polls first, since copying the next piece of a large model takes less time than
  /// waking a thread.
  bool Await(uint32_t target, std::chrono::nanoseconds timeout);

 private:
  bool HasReached(uint32_t target) const;
  void Block(uint32_t target, std::chrono::nanoseconds timeout);

  std::atomic<uint32_t> value_ = 0;
  std::atomic<uint64_t> awaited_ = 0;  // kIsAwaited and the target, or 0 if nobody is blocked.
};
static_assert(std::atomic<uint32_t>::is_always_lock_free &&
              std::atomic<uint64_t>::is_always_lock_free);

/// The lane through which one worker pushes. The worker copies its gradient into the ring, piece by
/// piece, while the server applies earlier pieces. The ring is small enough to stay in the caches.
struct alignas(4096) SharedLane {
  static constexpr size_t kPieceValues = size_t{64} << 10;
  static constexpr uint32_t kPieces = 8;  // A power of two, as counts of pieces wrap.

  SharedCount sent;     // The number of pieces that the worker has copied into the ring.
  SharedCount applied;  // The number of pieces that the server has applied.
  alignas(4096) std::array<std::array<float, kPieceValues>, kPieces> ring;
};

/// The memory that a server shares with its workers: a lane for each worker, and the weights. It is
/// a memfd, so nothing is left behind when its processes have ended. Like Slipstream's, it lies on
/// large pages if there are any. If it cannot be made or mapped, the process prints a line that
/// says so and exits.
///
/// Thread-safe: const after construction. A lane has one worker and one thread of the server.
class SharedSegment {
 public:
  /// Makes a server's memory. All values are zero.
  SharedSegment(uint32_t workers, size_t values);

  /// Maps the memory of the server with this address, for one of its workers.
  explicit SharedSegment(const std::string& address);

  ~SharedSegment();
  SharedSegment(const SharedSegment&) = delete;
  SharedSegment& operator=(const SharedSegment&) = delete;

  /// The path by which other processes of this machine can open it. It exists as long as the
  /// server.
  const std::string& address() const { return address_; }
  uint32_t workers() const;

  /// The weights. The server writes to them, and workers copy from them.
  std::span<float> weights() const;

  SharedLane& lane(uint32_t worker) const;

  /// Returns a lane that no other worker has. Ends the process if all have been taken.
  SharedLane& TakeLane() const;

 private:
  struct Head;

  Head& head() const;
  void Map(size_t bytes);

  FileDescriptor file_;
  std::string address_;
  std::byte* pages_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace slipstream::benchmarks

#endif  // SLIPSTREAM_TESTS_BENCHMARKS_SHARED_SEGMENT_H_
