#ifndef SLIPSTREAM_SERVER_DATA_PLANE_INITIALIZE_CALL_H_
#define SLIPSTREAM_SERVER_DATA_PLANE_INITIALIZE_CALL_H_

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "common/protocol/shard_messages.h"
#include "common/wire/chunk_wire.h"
#include "server/data_plane/call_guard.h"
#include "server/data_plane/shard_engine.h"

namespace slipstream {

/// Serves one Initialize call: copies the initial weights into its own buffer and hands the buffer
/// over once it is complete, so that a client that dies half-way leaves nothing behind. Deletes
/// itself when gRPC is done with it. `response` belongs to gRPC, and is valid until gRPC is done.
class InitializeCall final : public grpc::ServerReadReactor<grpc::ByteBuffer> {
 public:
  InitializeCall(ShardEngine& engine, const CallGuard::Guards& guards, grpc_call* call,
                 grpc::ByteBuffer* response);

  void OnReadDone(bool ok) override;
  void OnDone() override { delete this; }

 private:
  absl::Status Take(const InitializeChunk& chunk);

  ShardEngine& engine_;
  grpc::ByteBuffer* const response_;
  CallGuard guard_;
  std::optional<InitializeHeader> header_;
  std::shared_ptr<FloatBuffer> weights_;  // Handed over to the engine when complete.
  uint64_t received_ = 0;
  grpc::ByteBuffer read_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_DATA_PLANE_INITIALIZE_CALL_H_
