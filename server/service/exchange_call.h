#ifndef SLIPSTREAM_SERVER_SERVICE_EXCHANGE_CALL_H_
#define SLIPSTREAM_SERVER_SERVICE_EXCHANGE_CALL_H_

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "absl/time/time.h"
#include "common/base/encoding.h"
#include "common/local/socket_watch.h"
#include "common/rpc/awake_wait.h"
#include "server/service/chunked_answer.h"
#include "server/service/latest_calls.h"
#include "server/service/push_receiver.h"
#include "server/service/shard_engine.h"
#include "server/service/shared_memory_room.h"
#include "server/service/shared_path.h"
#include "server/service/transfer_watch.h"

namespace slipstream {

/// One Exchange stream of a worker: reads a push, waits for its answer, writes it, reads the next.
/// Between them the worker may ask for shared memory, and release what it was answered there. Once
/// it has that, messages go over the local socket; the stream then shows the worker's end, and
/// brings the weights that the worker cannot map.
///
/// Keeps itself until gRPC is done with it.
///
/// Only one of reading, waiting and writing goes on at a time, so each callback owns the members
/// until it starts the next; the end of the stream is the only event from aside.
class ExchangeCall final : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>,
                           public WaitingCall,
                           public SocketWatch::Reader,
                           public std::enable_shared_from_this<ExchangeCall> {
 public:
  /// What all calls of a shard share. Must outlive them.
  struct Place {
    ShardEngine& engine;
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

  void OnReadDone(bool ok) override;
  void OnReadable() override;
  void OnAnswer(Answer answer) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  /// The stream is not to be read from any more.
  enum class Over : uint8_t {
    kNo,
    kGone,
    kSpoke,  // The worker wrote to it although messages go over the local socket.
  };

  void OnMessage(const grpc::ByteBuffer& message);
  void Handle(PushReceiver::Outcome outcome);
  void OnRequest(const SharedMemoryRequest& request);
  SharedMemoryReply Attach();
  void Reply(const SharedMemoryReply& reply);

  /// Where the worker finds the weights, and keeps them there for it; nothing if it has to be sent
  /// them.
  std::optional<SharedWeights> Share(const Answer& answer);
  void WriteNext();

  /// The message at hand: to the local socket if that is spoken over and takes it.
  void Write(grpc::WriteOptions options);

  /// Hands the members to whoever the next message calls.
  void ReadNext();
  void End(const grpc::Status& status);

  /// From aside: ends the call, at once if nobody is at work, or else when the members are next
  /// handed on.
  void OnStreamOver(Over how);
  void EndIfIdle();

  // Constant after construction.
  const Place place_;
  const bool is_local_;

  std::shared_ptr<ExchangeCall> self_;  // Until OnDone.
  std::atomic<Over> over_ = Over::kNo;
  SocketWatch::Socket socket_;  // Of `shared_`, to be read from.

  SharedPath shared_;
  LatestCalls::Entry latest_;
  PushReceiver receiver_;
  size_t chunk_bytes_;
  Encoding encoding_ = Encoding::kFp32;
  bool ends_after_answer_ = false;
  std::optional<ChunkedAnswer> answer_;
  AwakeWait push_wait_;            // From an answer to the next push.
  AwakeWait chunk_wait_;           // From one chunk of a push to the next.
  AwakeWait* wait_ = &push_wait_;  // Which of them it is now.
  bool speaks_locally_ = false;
  bool answers_on_stream_ = false;  // All the same, this one.
  grpc::ByteBuffer read_;
  grpc::ByteBuffer written_;
  TransferWatch::Transfer transfer_;  // Rests between a push and the next.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_SERVICE_EXCHANGE_CALL_H_
