#ifndef SLIPSTREAM_WORKER_MODEL_MODEL_LISTENERS_H_
#define SLIPSTREAM_WORKER_MODEL_MODEL_LISTENERS_H_

#include "common/layout/tensor_layout.h"

namespace slipstream {

// The thread that computes and those that exchange values work on two arenas at once, and tell each
// other by these interfaces how far they are. Ranges are positions in the whole model.

/// Is told of gradient ranges as the backward pass finishes them.
class GradientListener {
 public:
  virtual ~GradientListener() = default;

  /// `range` of the gradient is final, though the listener may change it during the call. It stays
  /// so until the backward pass of the next step, which begins once all weights expected have
  /// arrived. Ranges are disjoint, come in order from the end
  /// of the arena to its beginning, and cover it by the time the step is finished. May be called
  /// from a device's own thread: must not block.
  virtual void OnGradientReady(ParameterRange range) = 0;
};

/// Is told what happens to an arena of weights, so that a forward pass may start on the weights
/// that have arrived. Those of one shard arrive in rising order.
///
/// Thread-safe: its functions may be called from any thread at any time.
class WeightsListener {
 public:
  virtual ~WeightsListener() = default;

  /// Announces that `range` holds new values for later steps. They stay until the gradient computed
  /// from them is pushed, or until the range is revoked. Returns without waiting for a device.
  virtual void WeightsArrived(ParameterRange range) = 0;

  /// Announces that `range`, parts of which may have arrived, will be overwritten by another
  /// version. Returns once no step reads it; the step under way, or else the next one, fails.
  virtual void RevokeWeights(ParameterRange range) = 0;

  /// Announces that weights that have not arrived never will: steps that wait for them fail, now
  /// and later.
  virtual void AbandonWeights() = 0;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_MODEL_MODEL_LISTENERS_H_
