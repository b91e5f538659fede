#ifndef SLIPSTREAM_WORKER_CLIENT_GRADIENT_FEED_H_
#define SLIPSTREAM_WORKER_CLIENT_GRADIENT_FEED_H_

#include <cstddef>
#include <functional>
#include <utility>

#include "common/base/mutex.h"
#include "common/layout/tensor_layout.h"
#include "common/protocol/shard_messages.h"
#include "worker/model/model_listeners.h"

namespace slipstream {

/// Says how much of one gradient is final. The thread that computes the gradient reports it to the
/// lanes that push it.
///
/// The backward pass completes a gradient from the end of the arena to its beginning, and a lane
/// sends its chunks in that order as they become final. The last chunk makes the push count, so it
/// is sent only once the whole step has succeeded and the feed was sealed. The push of an aborted
/// step ends before it is complete. Every wait ends, because every step is either sealed or
/// aborted.
///
/// Thread-safe: guarded by its own mutex.
class GradientFeed final : public GradientListener {
 public:
  /// Changes a range of the gradient for the last time.
  using LastChange = std::function<void(ParameterRange)>;

  /// Starts a gradient of `values` values, none of which is final. `last_change`, if it is set, is
  /// called with each range just before that counts as final, on the thread that reports it.
  explicit GradientFeed(size_t values, LastChange last_change = {})
      : last_change_(std::move(last_change)), final_from_(values) {}

  /// Reports that `range` is final but for the last change. It must end where the final part
  /// begins. Never blocks.
  void OnGradientReady(ParameterRange range) override;

  /// Reports that the step succeeded: the whole gradient is final, and its push may count.
  void Seal(const PushTrailer& trailer);

  /// Reports that the push must not count. REQUIRES: the feed is not sealed.
  void Abort();

  /// True if the values from `from` on are final, or never will be.
  bool IsDecided(size_t from) const;

  /// Waits until the values from `from` on are final and returns true; returns false if the step
  /// was aborted.
  bool AwaitFinal(size_t from);

  /// Waits until the step is over; returns true if it was sealed, false if it was aborted.
  bool AwaitTrailer();

  /// Returns what the step was sealed with; before that, a trailer that says nothing.
  PushTrailer trailer() const;

  /// True once the step was sealed or aborted.
  bool is_over() const;
  bool is_aborted() const;

 private:
  enum class State { kComputing, kSealed, kAborted };

  // Constant after construction.
  const LastChange last_change_;

  mutable Mutex mutex_;
  CondVar changed_;
  size_t final_from_ ABSL_GUARDED_BY(mutex_);
  State state_ ABSL_GUARDED_BY(mutex_) = State::kComputing;
  PushTrailer trailer_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_CLIENT_GRADIENT_FEED_H_
