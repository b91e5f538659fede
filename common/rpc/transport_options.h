#ifndef SLIPSTREAM_COMMON_RPC_TRANSPORT_OPTIONS_H_
#define SLIPSTREAM_COMMON_RPC_TRANSPORT_OPTIONS_H_

#include <grpcpp/server_builder.h>
#include <grpcpp/support/channel_arguments.h>

#include <cstddef>

#include "absl/time/time.h"
#include "common/base/limits.h"

namespace slipstream {

/// What both ends of a connection have to agree on, and the bounds of what a peer may cause.
struct TransportOptions {
  /// Larger messages are refused with RESOURCE_EXHAUSTED. The largest chunk and its header, or a
  /// layout of many tensors, must fit. Below 2 GiB.
  size_t message_bytes_max = kChunkBytesMax + (size_t{1} << 20);

  /// A connection silent for this long is probed; without an answer within the timeout it counts
  /// as broken, and its calls fail with UNAVAILABLE. Finds peers that vanished without a reset.
  absl::Duration keepalive_interval = absl::Seconds(10);
  absl::Duration keepalive_timeout = absl::Seconds(10);

  /// Clients try to connect for so long, and wait at most so long before the next try.
  absl::Duration connect_timeout = absl::Seconds(5);
  absl::Duration reconnect_wait_max = absl::Seconds(1);

  /// A server closes connections that have not finished their handshake by then.
  absl::Duration handshake_timeout = absl::Seconds(5);

  /// Calls open at once on one connection; bounds what a peer can have read on its behalf.
  int streams_per_connection_max = 128;

  /// Bytes that a server's connection accepts from a writer who lets it hold messages back, before
  /// the writer has to wait for the socket.
  /// It made exchanges of 16 and 64 MiB 2 to 8 % faster; half of it did less, and a quarter
  /// nothing.
  size_t write_ahead_bytes = size_t{8} << 20;
};

/// Of a channel with a connection of its own. gRPC's own retries are off: they would keep sent
/// payloads alive, and what may be repeated is for the protocol to say.
grpc::ChannelArguments ClientArguments(const TransportOptions& options = {});

void ApplyTransportOptions(grpc::ServerBuilder& builder, const TransportOptions& options = {});

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_RPC_TRANSPORT_OPTIONS_H_
