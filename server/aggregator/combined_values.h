#ifndef SLIPSTREAM_SERVER_AGGREGATOR_COMBINED_VALUES_H_
#define SLIPSTREAM_SERVER_AGGREGATOR_COMBINED_VALUES_H_

#include <cstdint>
#include <span>

#include "common/settings/policy_rows.h"
#include "server/data_plane/push_assembly.h"

namespace slipstream {

/// A complete gradient that is to be combined with others.
struct WeighedPayload {
  PushPayload payload;

  /// The number of examples that it is the mean of; > 0.
  uint32_t examples = 1;

  /// The factor by which its sender clips it (PushTrailer::clip).
  float clip = 1;
};

/// Writes to `to` the mean of gradients, each multiplied by its clip, and weighed by its examples
/// if rounds of the policy do so. They are summed in the given order, and with the arithmetic of a
/// shard's round (server/core/shard/round.h), so a gradient that is alone comes out as it is. Frees
/// each payload once it is read. REQUIRES: there is a gradient; each has to.size() values;
/// `weighing` is not kSum.
void CombineValues(std::span<WeighedPayload> gradients, PolicyTraits::Weighing weighing,
                   std::span<float> to);

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_AGGREGATOR_COMBINED_VALUES_H_
