#ifndef SLIPSTREAM_COMMON_WIRE_SHARED_MEMORY_WIRE_H_
#define SLIPSTREAM_COMMON_WIRE_SHARED_MEMORY_WIRE_H_

#include "absl/status/statusor.h"
#include "common/protocol/shard_messages.h"
#include "proto/shard.pb.h"

namespace slipstream {

/// Converts an exchange's messages about shared memory to protobuf and back. The end that has the
/// memory checks the places named; a step that does not exist gives INVALID_ARGUMENT with the
/// field's name.

v1::SharedValues ToWire(const SharedValues& values);
v1::SharedWeights ToWire(const SharedWeights& weights);
v1::SharedMemoryRequest ToWire(const SharedMemoryRequest& request);
v1::SharedMemoryReply ToWire(const SharedMemoryReply& reply);

SharedValues FromWire(const v1::SharedValues& wire);
SharedWeights FromWire(const v1::SharedWeights& wire);
absl::StatusOr<SharedMemoryRequest> FromWire(const v1::SharedMemoryRequest& wire);
SharedMemoryReply FromWire(const v1::SharedMemoryReply& wire);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_WIRE_SHARED_MEMORY_WIRE_H_
