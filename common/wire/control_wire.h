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

/// Converts what the control plane says about a run to protobuf messages and back. Wrong input from
/// a peer gives INVALID_ARGUMENT with the field's name.

/// Bounds what a view makes a peer allocate. It is far above the workers that a run may start with.
inline constexpr int kMembersMax = 65'536;

v1::Phase ToWire(Phase phase);
v1::View ToWire(const View& view);
v1::Layout ToWire(const TensorLayout& layout);
v1::ShardMap ToWire(const ShardMap& map);

absl::StatusOr<Phase> FromWire(v1::Phase wire);

/// Members must be in rising order of ids.
absl::StatusOr<View> FromWire(const v1::View& wire);

/// Enforces the limits of TensorLayout.
absl::StatusOr<TensorLayout> FromWire(const v1::Layout& wire);

/// Returns the map with the peer's ranges of `layout`. INVALID_ARGUMENT if they do not cover the
/// layout one after another, or if the fingerprint is not that of these ranges.
absl::StatusOr<ShardMap> FromWire(const v1::ShardMap& wire, const TensorLayout& layout);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_WIRE_CONTROL_WIRE_H_
