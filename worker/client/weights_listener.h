#ifndef SLIPSTREAM_WORKER_CLIENT_WEIGHTS_LISTENER_H_
#define SLIPSTREAM_WORKER_CLIENT_WEIGHTS_LISTENER_H_

#include "common/layout/tensor_layout.h"

namespace slipstream {

/// Is told, on the lanes' threads, what happens to an arena of weights, so that a forward pass may
/// start on what has come. Ranges are positions of the whole model; those of one shard come in
/// order of rising positions.
class WeightsListener {
 public:
  virtual ~WeightsListener() = default;

  /// `range` holds new values, and they stay until the gradient computed from them is
  /// pushed, or the range is revoked.
  virtual void OnWeightsArrived(ParameterRange range) = 0;

  /// A repeated call brings weights of a newer version to `range`, a shard's, parts of which may
  /// have arrived. Must return only once nobody reads that range; it is written next.
  virtual void OnWeightsRevoked(ParameterRange range) = 0;

  /// A call failed for good: what has not arrived will not.
  virtual void OnWeightsAbandoned() = 0;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_CLIENT_WEIGHTS_LISTENER_H_
