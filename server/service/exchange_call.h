#ifndef SLIPSTREAM_SERVER_SERVICE_EXCHANGE_CALL_H_
#define SLIPSTREAM_SERVER_SERVICE_EXCHANGE_CALL_H_

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <atomic>
#include <cstddef>
#include <optional>

#include "absl/time/time.h"
#include "common/base/encoding.h"
#include "server/service/chunked_answer.h"
#include "server/service/push_receiver.h"
#include "server/service/shard_engine.h"
#include "server/service/shared_memory_room.h"
#include "server/service/shared_path.h"
#include "server/service/transfer_watch.h"

namespace slipstream {

/// One Exchange stream of a worker: reads a push, waits for its answer, writes it, reads the next.
/// Between them the worker may ask for shared memory, and release what it was answered there.
/// Deletes itself when gRPC is done with it. Engine, watch and room must outlive it.
///
/// Only one of reading, waiting and writing goes on at a time, so each callback owns the members
/// until it starts the next; cancellation is the only event from aside.
class ExchangeCall final : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>,
                           public WaitingCall {
 public:
  /// `is_local`: the worker came through a local socket, and may be given shared memory.
  /// `default_chunk_bytes`: of weights whose reader leaves the choice to the shard. A reader
  /// through shared memory has `lease` to copy a version.
  ExchangeCall(ShardEngine& engine, TransferWatch& watch, grpc_call* call, SharedMemoryRoom& room,
               bool is_local, size_t default_chunk_bytes, absl::Duration lease);

  void OnReadDone(bool ok) override;
  void OnAnswer(Answer answer) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  void Handle(PushReceiver::Outcome outcome);
  void OnRequest(const SharedMemoryRequest& request);
  void Reply(const SharedMemoryReply& reply);

  /// Where the worker finds the weights, and keeps them there for it; nothing if it has to be sent
  /// them.
  std::optional<SharedWeights> Share(const Answer& answer);
  void WriteNext();
  void GiveUpIfCancelled();

  ShardEngine& engine_;
  SharedMemoryRoom& room_;
  const bool is_local_;
  const size_t default_chunk_bytes_;
  const absl::Duration lease_;
  std::atomic<bool> is_cancelled_ = false;

  SharedPath shared_;
  PushReceiver receiver_;
  size_t chunk_bytes_;
  Encoding encoding_ = Encoding::kFp32;
  bool ends_after_answer_ = false;
  std::optional<ChunkedAnswer> answer_;
  grpc::ByteBuffer read_;
  grpc::ByteBuffer written_;
  TransferWatch::Transfer transfer_;  // Rests between a push and the next.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_SERVICE_EXCHANGE_CALL_H_
