#ifndef SLIPSTREAM_WORKER_CLIENT_PUSH_ENCODERS_H_
#define SLIPSTREAM_WORKER_CLIENT_PUSH_ENCODERS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/base/encoding.h"
#include "common/base/ids.h"
#include "common/layout/shard_map.h"
#include "common/layout/tensor_layout.h"
#include "common/settings/run_spec.h"
#include "worker/client/push_encoder.h"

namespace slipstream {

/// The encoders of a worker's gradients. Each slot has one for each shard, whose error is that of
/// the slot's gradients alone: the pushes of two slots are under way at once.
///
/// Thread-safe as far as each encoder is used by one thread.
class PushEncoders {
 public:
  /// The frozen positions among a shard's values, for each shard.
  using Frozen = std::vector<std::vector<ParameterRange>>;

  /// Returns the values of the model that the rule of the run's servers freezes. Where workers push
  /// whole weights, that rule takes them as they are and freezes none.
  static Frozen FrozenIn(const RunSpec& run, const TensorLayout& layout, const ShardMap& map);

  /// `slots`: the number of gradients that may be in flight. `frozen`: see PushEncoder; may be
  /// empty if there are none.
  PushEncoders(Encoding encoding, const ShardMap& map, size_t slots, const Frozen& frozen = {});

  /// Returns the encoder of the slot's gradients to the shard; null if gradients are sent
  /// unencoded. The owner is this object.
  PushEncoder* Of(ShardId shard, uint32_t slot);

  /// Returns the errors that are fed back, by slot and then by shard; empty if none are. They are
  /// valid until the next push. REQUIRES: no encoder is in use.
  std::vector<std::span<float>> errors();

 private:
  std::vector<std::vector<PushEncoder>> encoders_;  // By slot and shard; empty for fp32.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_CLIENT_PUSH_ENCODERS_H_
