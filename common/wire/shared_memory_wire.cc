#include "common/wire/shared_memory_wire.h"

#include <string>

namespace slipstream {

v1::SharedValues ToWire(const SharedValues& values) {
  v1::SharedValues wire;
  wire.set_begin(values.begin);
  wire.set_count(values.count);
  return wire;
}

v1::SharedWeights ToWire(const SharedWeights& weights) {
  v1::SharedWeights wire;
  wire.set_buffer(weights.buffer);
  wire.set_filling(weights.filling);
  return wire;
}

v1::SharedMemoryRequest ToWire(const SharedMemoryRequest& request) {
  v1::SharedMemoryRequest wire;
  wire.set_step(static_cast<v1::SharedMemoryRequest::Step>(request.step));
  return wire;
}

v1::SharedMemoryReply ToWire(const SharedMemoryReply& reply) {
  v1::SharedMemoryReply wire;
  wire.set_socket(reply.socket);
  wire.set_refusal(reply.refusal);
  return wire;
}

SharedValues FromWire(const v1::SharedValues& wire) { return {wire.begin(), wire.count()}; }

SharedWeights FromWire(const v1::SharedWeights& wire) { return {wire.buffer(), wire.filling()}; }

absl::StatusOr<SharedMemoryRequest> FromWire(const v1::SharedMemoryRequest& wire) {
  if (wire.step() == 0 || !v1::SharedMemoryRequest::Step_IsValid(wire.step())) {
    return absl::InvalidArgumentError("shared_memory.step: " + std::to_string(wire.step()) +
                                      " is none");
  }
  return SharedMemoryRequest{static_cast<SharedMemoryRequest::Step>(wire.step())};
}

SharedMemoryReply FromWire(const v1::SharedMemoryReply& wire) {
  return {wire.socket(), wire.refusal()};
}

}  // namespace slipstream
