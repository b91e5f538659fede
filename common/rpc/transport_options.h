#ifndef SLIPSTREAM_COMMON_RPC_TRANSPORT_OPTIONS_H_
#define SLIPSTREAM_COMMON_RPC_TRANSPORT_OPTIONS_H_

#include <cstddef>

#include "absl/time/time.h"
#include "common/base/limits.h"

namespace grpc {
class ChannelArguments;
class ServerBuilder;
}  // namespace grpc

namespace slipstream {

/// Settings on which both ends of a connection must agree, and bounds on what a peer may cause.
struct TransportOptions {
  /// Larger messages are refused with RESOURCE_EXHAUSTED. The bound must hold the largest chunk
  /// with its header, and a layout of many tensors. Below 2 GiB.
  size_t message_bytes_max = kChunkBytesMax + (size_t{1} << 20);

  /// A connection that was silent for this long is probed. Without an answer within the timeout it
  /// counts as broken, and its calls fail with UNAVAILABLE. This finds peers that vanished without
  /// a reset.
  absl::Duration keepalive_interval = absl::Seconds(10);
  absl::Duration keepalive_timeout = absl::Seconds(10);

  /// How long a client tries to connect, and how long it waits at most before the next try.
  absl::Duration connect_timeout = absl::Seconds(5);
  absl::Duration reconnect_wait_max = absl::Seconds(1);

  /// A client that cannot connect looks the peer's name up again, but not sooner than after this.
  absl::Duration lookup_interval_min = absl::Seconds(1);

  /// How long a connection may take for its handshake before the server closes it.
  absl::Duration handshake_timeout = absl::Seconds(5);

  /// The number of calls open at once on one connection; bounds what a peer can have read on its
  /// behalf.
  int streams_per_connection_max = 128;

  /// How many bytes a server's connection accepts from a writer that lets it hold messages back,
  /// before the writer must wait for the socket. 8 MiB made exchanges of 16 and 64 MiB 2 to 8 %
  /// faster; half of that did less, and a quarter nothing.
  size_t write_ahead_bytes = size_t{8} << 20;
};

/// Returns the arguments of a channel with a connection of its own. gRPC's own retries are off:
/// they would keep sent payloads alive, and the protocol decides what may be repeated.
grpc::ChannelArguments ClientArguments(const TransportOptions& options = {});

void ApplyTransportOptions(grpc::ServerBuilder& builder, const TransportOptions& options = {});

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_RPC_TRANSPORT_OPTIONS_H_
