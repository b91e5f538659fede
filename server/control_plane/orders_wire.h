#ifndef SLIPSTREAM_SERVER_CONTROL_PLANE_ORDERS_WIRE_H_
#define SLIPSTREAM_SERVER_CONTROL_PLANE_ORDERS_WIRE_H_

#include "absl/status/statusor.h"
#include "proto/coordinator.pb.h"
#include "server/core/orders.h"
#include "server/core/saved_version.h"

namespace slipstream {

/// Convert the coordinator's orders to and from the message of SyncServer. A message that does not
/// decode is INVALID_ARGUMENT.
v1::SyncServerReply ToWire(const ServerOrders& orders);
absl::StatusOr<ServerOrders> FromWire(const v1::SyncServerReply& wire);

v1::SavedVersion ToWire(const SavedVersion& saved);
SavedVersion FromWire(const v1::SavedVersion& wire);

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CONTROL_PLANE_ORDERS_WIRE_H_
