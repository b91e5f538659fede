#ifndef SLIPSTREAM_SERVER_DATA_PLANE_PUSH_CALL_H_
#define SLIPSTREAM_SERVER_DATA_PLANE_PUSH_CALL_H_

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <atomic>

#include "server/data_plane/call_guard.h"
#include "server/data_plane/push_receiver.h"
#include "server/data_plane/shard_engine.h"

namespace slipstream {

/// Serves one Push call: reads one push and answers with its outcome. Deletes itself when gRPC is
/// done with it. `response` belongs to gRPC, and is valid until gRPC is done.
class PushCall final : public grpc::ServerReadReactor<grpc::ByteBuffer>, public WaitingCall {
 public:
  PushCall(ShardEngine& engine, const CallGuard::Guards& guards, grpc_call* call,
           grpc::ByteBuffer* response);

  void OnReadDone(bool ok) override;
  void OnAnswer(Answer answer) override;
  void OnLagged(const absl::Status& status) override { guard_.transfer().End(status); }
  void OnCancel() override;
  void OnDone() override { delete this; }

 private:
  void GiveUpIfCancelled();

  ShardEngine& engine_;
  grpc::ByteBuffer* const response_;
  std::atomic<bool> is_cancelled_ = false;
  CallGuard guard_;
  PushReceiver receiver_;
  grpc::ByteBuffer read_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_DATA_PLANE_PUSH_CALL_H_
