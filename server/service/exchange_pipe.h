#ifndef SLIPSTREAM_SERVER_SERVICE_EXCHANGE_PIPE_H_
#define SLIPSTREAM_SERVER_SERVICE_EXCHANGE_PIPE_H_

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "common/local/socket_watch.h"
#include "common/protocol/shard_messages.h"
#include "server/service/shared_memory_room.h"
#include "server/service/shared_path.h"

namespace slipstream {

/// Carries the messages of one Exchange stream, both ways: over gRPC, and once memory is shared
/// with the worker over the local socket of that. The stream then shows the worker's end, and
/// brings the answers that the socket does not take. Whoever derives from it need not know which.
///
/// Keeps itself from Begin until gRPC is done with it.
///
/// Only one of reading, waiting and writing goes on at a time, so each callback owns the members
/// until it starts the next; the end of the stream is the only event from aside.
class ExchangePipe : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>,
                     public SocketWatch::Reader,
                     public std::enable_shared_from_this<ExchangePipe> {
 public:
  void OnReadDone(bool ok) final;
  void OnReadable() final;
  void OnWriteDone(bool ok) final;
  void OnCancel() final { OnStreamOver(Over::kGone); }
  void OnDone() final;

 protected:
  /// Both must outlive it.
  ExchangePipe(SharedMemoryRoom& room, SocketWatch& sockets) : socket_(sockets), shared_(room) {}

  /// Reads the first message, or ends at once where the call is not `admitted`. Once.
  void Begin(const grpc::Status& admitted);

  // Each of these hands the members to whoever is called next.

  /// OnMessage follows. Until `awake_until` one that comes over the local socket is waited for
  /// awake.
  void Read(std::chrono::steady_clock::time_point awake_until);

  /// OnWritten follows, perhaps before this returns. A message with values goes over gRPC, and with
  /// it what follows until the next Read.
  void Write(grpc::ByteBuffer&& message, grpc::WriteOptions options, bool has_values);

  /// An answer may come from elsewhere at any time from now on, unless the stream is over: then
  /// StopWaiting follows.
  void Wait();

  /// The last of all. OnEnd follows.
  void End(const grpc::Status& status);

  virtual void OnMessage(const grpc::ByteBuffer& message) = 0;
  virtual void OnWritten(size_t bytes) = 0;

  /// From aside. Takes back what waits; true if something did, which is not called any more then.
  virtual bool StopWaiting() = 0;

  /// The worker does not know of the end yet.
  virtual void OnEnd() = 0;

  /// gRPC is done with it.
  virtual void OnGone() = 0;

  /// Shares memory with the worker, who has asked for it: after this the pipe goes over the local
  /// socket.
  SharedMemoryReply Attach();

  /// May be called by whoever has the members.
  SharedPath& shared() { return shared_; }

 private:
  /// The stream is not to be read from any more.
  enum class Over : uint8_t {
    kNo,
    kGone,
    kSpoke,  // The worker wrote to it although messages go over the local socket.
  };

  /// Ends the call, at once if nobody is at work, or else when the members are next handed on.
  void OnStreamOver(Over how);
  void EndIfIdle();

  std::shared_ptr<ExchangePipe> self_;  // Until OnDone.
  std::atomic<Over> over_ = Over::kNo;
  SocketWatch::Socket socket_;  // Of `shared_`, to be read from.

  SharedPath shared_;
  bool speaks_locally_ = false;                        // Messages go over the socket,
  bool answers_on_grpc_ = false;                       // but not this answer.
  std::chrono::steady_clock::time_point awake_until_;  // Of the last Read.
  grpc::ByteBuffer read_;
  grpc::ByteBuffer written_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_SERVICE_EXCHANGE_PIPE_H_
