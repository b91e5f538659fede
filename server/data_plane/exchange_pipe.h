#ifndef SLIPSTREAM_SERVER_DATA_PLANE_EXCHANGE_PIPE_H_
#define SLIPSTREAM_SERVER_DATA_PLANE_EXCHANGE_PIPE_H_

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "common/local/socket_watch.h"
#include "common/protocol/shard_messages.h"
#include "server/data_plane/shared_memory_channel.h"
#include "server/data_plane/shared_memory_use.h"

namespace slipstream {

/// Carries the messages of one Exchange stream, both ways: over gRPC, or, once memory is shared
/// with the worker, over the local socket of the shared memory. The gRPC stream then shows when the
/// worker is gone, and carries the answers that the socket does not take. Derived classes need not
/// know which way a message takes.
///
/// Keeps itself alive from Begin until gRPC is done with it.
///
/// Only one of reading, waiting and writing goes on at a time, so each callback owns the members
/// until it starts the next operation. Only the end of the stream comes at any time, from another
/// thread.
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
  /// Both arguments must outlive this object.
  ExchangePipe(SharedMemoryUse& memory_use, SocketWatch& sockets)
      : socket_(sockets), shared_(memory_use) {}

  /// Reads the first message, or ends at once if the call is not `admitted`. To be called once.
  void Begin(const grpc::Status& admitted);

  // Each of these starts an operation, whose callback then owns the members.

  /// Reads a message; OnMessage follows. Until `awake_until` a message that comes over the local
  /// socket is waited for awake.
  void Read(std::chrono::steady_clock::time_point awake_until);

  /// Writes a message; OnWritten follows, perhaps before this returns. A message with values goes
  /// over gRPC, and so do the messages after it until the next Read.
  void Write(grpc::ByteBuffer&& message, grpc::WriteOptions options, bool has_values);

  /// Waits for an answer, which another thread may give at any time from now on. If the stream is
  /// over, StopWaiting follows.
  void Wait();

  /// Ends the call; OnEnd follows. No operation may follow.
  void End(const grpc::Status& status);

  virtual void OnMessage(const grpc::ByteBuffer& message) = 0;
  virtual void OnWritten(size_t bytes) = 0;

  /// Stops waiting for an answer; may be called from any thread. Returns true if the call was
  /// waiting: then it gets no answer any more.
  virtual bool StopWaiting() = 0;

  /// Called before the worker knows of the end.
  virtual void OnEnd() = 0;

  /// Called when gRPC is done with the call.
  virtual void OnGone() = 0;

  /// Shares memory with the worker, which has asked for it. After this, messages go over the local
  /// socket.
  SharedMemoryReply Attach();

  /// To be called only by the owner of the members.
  SharedMemoryChannel& shared() { return shared_; }

 private:
  /// Why the stream is not to be read from any more.
  enum class Over : uint8_t {
    kNo,
    kGone,
    kSpoke,  // The worker wrote to it although messages go over the local socket.
  };

  /// Ends the call: at once if no callback is at work, or else when the next operation starts.
  void OnStreamOver(Over how);
  void EndIfIdle();

  std::shared_ptr<ExchangePipe> self_;  // Set until OnDone.
  std::atomic<Over> over_ = Over::kNo;
  SocketWatch::Socket socket_;  // The socket of `shared_`, to read from.

  SharedMemoryChannel shared_;
  bool speaks_locally_ = false;                        // Set once messages go over the socket.
  bool answers_on_grpc_ = false;                       // Set if the present answer goes over gRPC.
  std::chrono::steady_clock::time_point awake_until_;  // From the last Read.
  grpc::ByteBuffer read_;
  grpc::ByteBuffer written_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_DATA_PLANE_EXCHANGE_PIPE_H_
