#ifndef SLIPSTREAM_SERVER_SERVICE_EXCHANGE_CALL_H_
#define SLIPSTREAM_SERVER_SERVICE_EXCHANGE_CALL_H_

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <atomic>
#include <cstddef>
#include <optional>

#include "server/service/chunked_answer.h"
#include "server/service/push_receiver.h"
#include "server/service/shard_engine.h"

namespace slipstream {

/// One Exchange stream of a worker: reads a push, waits for its answer, writes it, reads the next.
/// Deletes itself when gRPC is done with it. The engine must outlive it.
///
/// Only one of reading, waiting and writing goes on at a time, so each callback owns the members
/// until it starts the next; cancellation is the only event from aside.
class ExchangeCall final : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>,
                           public WaitingCall {
 public:
  ExchangeCall(ShardEngine& engine, size_t default_chunk_bytes);

  void OnReadDone(bool ok) override;
  void OnAnswer(Answer answer) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override { delete this; }

 private:
  void Handle(PushReceiver::Outcome outcome);
  void WriteNext();
  void GiveUpIfCancelled();

  ShardEngine& engine_;
  const size_t default_chunk_bytes_;
  std::atomic<bool> is_cancelled_ = false;

  PushReceiver receiver_;
  size_t chunk_bytes_;
  bool ends_after_answer_ = false;
  std::optional<ChunkedAnswer> answer_;
  grpc::ByteBuffer read_;
  grpc::ByteBuffer written_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_SERVICE_EXCHANGE_CALL_H_
