#ifndef SLIPSTREAM_WORKER_CLIENT_WEIGHTS_LISTENER_H_
#define SLIPSTREAM_WORKER_CLIENT_WEIGHTS_LISTENER_H_

#include "common/layout/tensor_layout.h"

namespace slipstream {

/// Is told, on the lanes' threads, what happens to an arena of weights, so that a forward pass may
/// start on the weights that have arrived. Ranges are positions in the whole model; those of one
/// shard arrive in rising order.
class WeightsListener {
 public:
  virtual ~WeightsListener() = default;

  /// `range` holds new values. They stay until the gradient computed from them is pushed, or until
  /// the range is revoked.
  virtual void OnWeightsArrived(ParameterRange range) = 0;

  /// A repeated call brings a newer version of `range`, the range of one shard, parts of which may
  /// have arrived. Must return only once nobody reads that range, because it is overwritten next.
  virtual void OnWeightsRevoked(ParameterRange range) = 0;

  /// A call failed permanently: weights that have not arrived will never arrive.
  virtual void OnWeightsAbandoned() = 0;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_CLIENT_WEIGHTS_LISTENER_H_
