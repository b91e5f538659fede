#ifndef SLIPSTREAM_WORKER_CLIENT_GRADIENT_FEED_H_
#define SLIPSTREAM_WORKER_CLIENT_GRADIENT_FEED_H_

#include <cstddef>

#include "common/base/mutex.h"
#include "common/layout/tensor_layout.h"

namespace slipstream {

/// How far one gradient is final: what the thread that computes it tells the lanes that push it.
///
/// Backward finishes a gradient from the end of the arena to its beginning, and a lane sends its
/// chunks in that order as they become final. The last chunk makes the push count, so it leaves
/// only once the whole step has succeeded and was sealed; a push whose step was aborted ends before
/// it is complete. Every wait ends, because every step ends: sealed or aborted.
///
/// Thread-safe: guarded by its own mutex.
class GradientFeed {
 public:
  /// Of an arena of `values`, none of which is final.
  explicit GradientFeed(size_t values) : final_from_(values) {}

  /// `range` is final and lies right before what is. Never blocks.
  void OnReady(ParameterRange range);

  /// The step succeeded: all of it is final, and its push may count.
  void Seal();

  /// The push must not count. REQUIRES: it is not sealed.
  void Abort();

  /// Whether the values from `from` on are final, or will not be.
  bool IsDecided(size_t from) const;

  /// Waits for that; false if the step was aborted.
  bool AwaitFinal(size_t from);

  /// Waits until the step was sealed; false if it was aborted.
  bool AwaitSeal();

  /// Sealed or aborted.
  bool is_over() const;
  bool is_aborted() const;

 private:
  enum class State { kComputing, kSealed, kAborted };

  mutable Mutex mutex_;
  CondVar changed_;
  size_t final_from_ ABSL_GUARDED_BY(mutex_);
  State state_ ABSL_GUARDED_BY(mutex_) = State::kComputing;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_CLIENT_GRADIENT_FEED_H_
