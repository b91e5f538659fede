#include "common/rpc/transport_options.h"

#include <grpc/compression.h>
#include <grpc/grpc.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/support/channel_arguments.h>

#include <algorithm>

namespace slipstream {
namespace {

int Milliseconds(absl::Duration duration) {
  return static_cast<int>(absl::ToInt64Milliseconds(duration));
}

/// Makes a channel or server refuse compressed messages: the bound on a message applies to the
/// bytes received, and decompression may make a thousand times as many of them. `set` takes an
/// argument and its value.
template <typename Set>
void RefuseCompression(const Set& set) {
  // A call whose headers name a compression is refused with UNIMPLEMENTED.
  set(GRPC_COMPRESSION_CHANNEL_ENABLED_ALGORITHMS_BITSET, 1 << GRPC_COMPRESS_NONE);
  // Nothing is decompressed before the call's headers are known.
  set(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
}

}  // namespace

grpc::ChannelArguments ClientArguments(const TransportOptions& options) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(static_cast<int>(options.message_bytes_max));
  arguments.SetMaxSendMessageSize(static_cast<int>(options.message_bytes_max));
  RefuseCompression([&](const char* name, int value) { arguments.SetInt(name, value); });
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  // Connect to the cluster's addresses directly, even if the environment names a web proxy.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, Milliseconds(options.keepalive_interval));
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, Milliseconds(options.keepalive_timeout));
  arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, Milliseconds(options.connect_timeout));
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, Milliseconds(options.reconnect_wait_max));
  // A server that is rescheduled keeps its name and gets another address. gRPC would look the name
  // up every 30 s only, which is as long as a call is repeated.
  arguments.SetInt(GRPC_ARG_DNS_MIN_TIME_BETWEEN_RESOLUTIONS_MS,
                   Milliseconds(options.lookup_interval_min));
  return arguments;
}

void ApplyTransportOptions(grpc::ServerBuilder& builder, const TransportOptions& options) {
  builder.SetMaxReceiveMessageSize(static_cast<int>(options.message_bytes_max));
  builder.SetMaxSendMessageSize(static_cast<int>(options.message_bytes_max));
  const auto set = [&builder](const char* name, int value) {
    builder.AddChannelArgument(name, value);
  };
  RefuseCompression(set);
  set(GRPC_ARG_ALLOW_REUSEPORT, 0);  // Two servers on one port would each get some of the calls.
  set(GRPC_ARG_HTTP2_WRITE_BUFFER_SIZE, static_cast<int>(options.write_ahead_bytes));
  set(GRPC_ARG_MAX_CONCURRENT_STREAMS, options.streams_per_connection_max);
  set(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, Milliseconds(options.handshake_timeout));
  set(GRPC_ARG_KEEPALIVE_TIME_MS, Milliseconds(options.keepalive_interval));
  set(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, Milliseconds(options.keepalive_timeout));
  set(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  // The server accepts probes at half the clients' interval, so that none is cut off for probing on
  // time.
  set(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
      std::max(1, Milliseconds(options.keepalive_interval / 2)));
}

}  // namespace slipstream
