#ifndef SLIPSTREAM_SERVER_DATA_PLANE_EXCHANGE_CALL_H_
#define SLIPSTREAM_SERVER_DATA_PLANE_EXCHANGE_CALL_H_

#include <grpcpp/support/byte_buffer.h>

#include <cstddef>
#include <optional>

#include "absl/time/time.h"
#include "common/base/encoding.h"
#include "common/local/socket_watch.h"
#include "common/rpc/awake_wait.h"
#include "server/data_plane/call_guard.h"
#include "server/data_plane/chunked_answer.h"
#include "server/data_plane/data_plane_engine.h"
#include "server/data_plane/exchange_pipe.h"
#include "server/data_plane/push_receiver.h"
#include "server/data_plane/shared_memory_use.h"

namespace slipstream {

/// Serves one Exchange stream of a worker: reads a push, waits for its answer, writes the answer,
/// and reads the next push. In between the worker may ask for shared memory, and release the
/// weights that it was shown there.
class ExchangeCall final : public ExchangePipe, public WaitingCall {
 public:
  /// The objects that all calls of a service share. They must outlive the calls.
  struct Place {
    DataPlaneEngine& engine;
    CallGuard::Guards guards;
    SharedMemoryUse& memory_use;
    SocketWatch& sockets;

    /// The chunk size of weights if their reader leaves the choice to the shard.
    size_t default_chunk_bytes;

    /// How long a reader through shared memory has at least to copy a version.
    absl::Duration lease;
  };

  /// `is_local`: the worker came through a local socket, and may be given shared memory.
  static ExchangeCall* Start(const Place& place, grpc_call* call, bool is_local);

  /// To be called by Start only.
  ExchangeCall(const Place& place, grpc_call* call, bool is_local);

  void OnMessage(const grpc::ByteBuffer& message) override;
  void OnAnswer(Answer answer) override;
  void OnLagged(const absl::Status& status) override { guard_.transfer().End(status); }
  void OnWritten(size_t bytes) override;
  bool StopWaiting() override { return place_.engine.Cancel(this); }
  void OnEnd() override { receiver_.Abandon(); }
  void OnGone() override;

 private:
  void Handle(PushReceiver::Outcome outcome);
  void OnRequest(const SharedMemoryRequest& request);
  void Reply(const SharedMemoryReply& reply);
  SharedMemoryReply ShareMemory();

  /// Returns where the worker finds the weights in shared memory, and keeps them there for it;
  /// nothing if they have to be sent.
  std::optional<SharedWeights> Share(const Answer& answer);

  /// Reads the next message. `wait` is the kind of wait that begins.
  void ReadNext(AwakeWait& wait);

  // Constant after construction.
  const Place place_;
  const bool is_local_;

  CallGuard guard_;  // Its transfer rests between two pushes.
  PushReceiver receiver_;
  size_t chunk_bytes_;
  Encoding encoding_ = Encoding::kFp32;
  bool ends_after_answer_ = false;
  std::optional<ChunkedAnswer> answer_;
  AwakeWait push_wait_;            // From an answer to the next push.
  AwakeWait chunk_wait_;           // From one chunk of a push to the next.
  AwakeWait* wait_ = &push_wait_;  // The current one of the two.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_DATA_PLANE_EXCHANGE_CALL_H_
