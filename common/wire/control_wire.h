#ifndef SLIPSTREAM_COMMON_WIRE_CONTROL_WIRE_H_
#define SLIPSTREAM_COMMON_WIRE_CONTROL_WIRE_H_

#include "absl/status/statusor.h"
#include "common/layout/shard_map.h"
#include "common/layout/tensor_layout.h"
#include "common/protocol/view.h"
#include "proto/coordinator.pb.h"
#include "proto/status.pb.h"
#include "proto/types.pb.h"

namespace slipstream {

/// What the control plane says about a run, as protobuf messages and back. What a peer sent comes
/// back as a Status, INVALID_ARGUMENT with the field's name.

/// Bounds what a view makes a peer allocate; far above the workers a run may start with.
inline constexpr int kMembersMax = 65'536;

v1::Phase ToWire(Phase phase);
v1::View ToWire(const View& view);
v1::Layout ToWire(const TensorLayout& layout);
v1::ShardMap ToWire(const ShardMap& map);

absl::StatusOr<Phase> FromWire(v1::Phase wire);

/// Members must come in rising order of ids.
absl::StatusOr<View> FromWire(const v1::View& wire);

/// Keeps the limits of TensorLayout.
absl::StatusOr<TensorLayout> FromWire(const v1::Layout& wire);

/// Cuts `layout` into as many shards and refuses a map that says otherwise: peers that cut
/// differently must not talk.
absl::StatusOr<ShardMap> FromWire(const v1::ShardMap& wire, const TensorLayout& layout);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_WIRE_CONTROL_WIRE_H_
