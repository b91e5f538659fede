#ifndef SLIPSTREAM_SERVER_SERVICE_PUSH_CALL_H_
#define SLIPSTREAM_SERVER_SERVICE_PUSH_CALL_H_

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <atomic>

#include "server/listen/caller.h"
#include "server/service/latest_calls.h"
#include "server/service/push_receiver.h"
#include "server/service/shard_engine.h"
#include "server/service/transfer_watch.h"

namespace slipstream {

/// Serves one Push call: reads one push and answers with its outcome. Deletes itself when gRPC is
/// done with it. All arguments but `call` must outlive it; `connections` may be null. `response`
/// belongs to gRPC, and is valid until gRPC is done.
class PushCall final : public grpc::ServerReadReactor<grpc::ByteBuffer>, public WaitingCall {
 public:
  PushCall(ShardEngine& engine, Connections* connections, TransferWatch& watch, LatestCalls& calls,
           grpc_call* call, grpc::ByteBuffer* response);

  void OnReadDone(bool ok) override;
  void OnAnswer(Answer answer) override;
  void OnCancel() override;
  void OnDone() override { delete this; }

 private:
  void GiveUpIfCancelled();

  ShardEngine& engine_;
  grpc::ByteBuffer* const response_;
  std::atomic<bool> is_cancelled_ = false;
  Caller caller_;
  LatestCalls::Entry latest_;
  PushReceiver receiver_;
  grpc::ByteBuffer read_;
  TransferWatch::Transfer transfer_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_SERVICE_PUSH_CALL_H_
