#ifndef SLIPSTREAM_SERVER_SERVICE_EXCHANGE_CALL_H_
#define SLIPSTREAM_SERVER_SERVICE_EXCHANGE_CALL_H_

#include <grpcpp/support/byte_buffer.h>

#include <cstddef>
#include <optional>

#include "absl/time/time.h"
#include "common/base/encoding.h"
#include "common/local/socket_watch.h"
#include "common/rpc/awake_wait.h"
#include "server/listen/caller.h"
#include "server/service/chunked_answer.h"
#include "server/service/exchange_pipe.h"
#include "server/service/latest_calls.h"
#include "server/service/push_receiver.h"
#include "server/service/shard_engine.h"
#include "server/service/shared_memory_room.h"
#include "server/service/transfer_watch.h"

namespace slipstream {

/// One Exchange stream of a worker: reads a push, waits for its answer, writes it, reads the next.
/// Between them the worker may ask for shared memory, and release what it was answered there.
class ExchangeCall final : public ExchangePipe, public WaitingCall {
 public:
  /// What all calls of a shard share. Must outlive them.
  struct Place {
    ShardEngine& engine;
    Connections* connections;  // May be null.
    TransferWatch& transfers;
    LatestCalls& exchanges;
    SharedMemoryRoom& room;
    SocketWatch& sockets;

    /// Of weights whose reader leaves the choice to the shard.
    size_t default_chunk_bytes;

    /// What a reader through shared memory has to copy a version.
    absl::Duration lease;
  };

  /// `is_local`: the worker came through a local socket, and may be given shared memory.
  static ExchangeCall* Start(const Place& place, grpc_call* call, bool is_local);

  /// Private: see Start.
  ExchangeCall(const Place& place, grpc_call* call, bool is_local);

  void OnMessage(const grpc::ByteBuffer& message) override;
  void OnAnswer(Answer answer) override;
  void OnWritten(size_t bytes) override;
  bool StopWaiting() override { return place_.engine.Cancel(this); }
  void OnEnd() override { receiver_.Abandon(); }
  void OnGone() override;

 private:
  void Handle(PushReceiver::Outcome outcome);
  void OnRequest(const SharedMemoryRequest& request);
  void Reply(const SharedMemoryReply& reply);
  SharedMemoryReply ShareMemory();

  /// Where the worker finds the weights, and keeps them there for it; nothing if it has to be sent
  /// them.
  std::optional<SharedWeights> Share(const Answer& answer);

  /// The wait that is over or begins next is of this kind.
  void ReadNext(AwakeWait& wait);

  // Constant after construction.
  const Place place_;
  const bool is_local_;

  Caller caller_;
  LatestCalls::Entry latest_;
  PushReceiver receiver_;
  size_t chunk_bytes_;
  Encoding encoding_ = Encoding::kFp32;
  bool ends_after_answer_ = false;
  std::optional<ChunkedAnswer> answer_;
  AwakeWait push_wait_;               // From an answer to the next push.
  AwakeWait chunk_wait_;              // From one chunk of a push to the next.
  AwakeWait* wait_ = &push_wait_;     // Which of them it is now.
  TransferWatch::Transfer transfer_;  // Rests between a push and the next.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_SERVICE_EXCHANGE_CALL_H_
