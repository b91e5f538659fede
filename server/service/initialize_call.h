#ifndef SLIPSTREAM_SERVER_SERVICE_INITIALIZE_CALL_H_
#define SLIPSTREAM_SERVER_SERVICE_INITIALIZE_CALL_H_

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "common/protocol/shard_messages.h"
#include "common/wire/chunk_wire.h"
#include "server/listen/caller.h"
#include "server/service/latest_calls.h"
#include "server/service/shard_engine.h"
#include "server/service/transfer_watch.h"

namespace slipstream {

/// Serves one Initialize call: copies the initial weights into its own buffer and hands the buffer
/// over once it is complete, so that a client that dies half-way leaves nothing behind. Deletes
/// itself when gRPC is done with it. All arguments but `call` must outlive it; `connections` may be
/// null. `response` belongs to gRPC, and is valid until gRPC is done.
class InitializeCall final : public grpc::ServerReadReactor<grpc::ByteBuffer> {
 public:
  InitializeCall(ShardEngine& engine, Connections* connections, TransferWatch& watch,
                 LatestCalls& calls, grpc_call* call, grpc::ByteBuffer* response);

  void OnReadDone(bool ok) override;
  void OnDone() override { delete this; }

 private:
  absl::Status Take(const InitializeChunk& chunk);

  ShardEngine& engine_;
  grpc::ByteBuffer* const response_;
  Caller caller_;
  LatestCalls::Entry latest_;
  std::optional<InitializeHeader> header_;
  std::shared_ptr<FloatBuffer> weights_;  // Handed over to the engine when complete.
  uint64_t received_ = 0;
  grpc::ByteBuffer read_;
  TransferWatch::Transfer transfer_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_SERVICE_INITIALIZE_CALL_H_
