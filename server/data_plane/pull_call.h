#ifndef SLIPSTREAM_SERVER_DATA_PLANE_PULL_CALL_H_
#define SLIPSTREAM_SERVER_DATA_PLANE_PULL_CALL_H_

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <atomic>
#include <cstddef>
#include <optional>

#include "absl/status/status.h"
#include "common/base/encoding.h"
#include "common/protocol/shard_messages.h"
#include "server/core/shard/shard_state.h"
#include "server/data_plane/call_guard.h"
#include "server/data_plane/chunked_answer.h"
#include "server/data_plane/data_plane_engine.h"
#include "server/data_plane/waiting_call.h"

namespace slipstream {

/// Serves one Pull call: waits for its version, then writes the weights chunk by chunk. Deletes
/// itself when gRPC is done with it.
class PullCall final : public grpc::ServerWriteReactor<grpc::ByteBuffer>, public WaitingCall {
 public:
  PullCall(DataPlaneEngine& engine, const CallGuard::Guards& guards, grpc_call* call,
           size_t default_chunk_bytes, const grpc::ByteBuffer& request);

  void OnAnswer(Answer answer) override;
  void OnLagged(const absl::Status& status) override { guard_.transfer().End(status); }
  void OnSendInitialMetadataDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  /// Returns PERMISSION_DENIED if the caller may not pull in the name of that member. An aggregator
  /// may do so for the workers of its group, but not to train.
  absl::Status MayPull(const PullRequest& request);
  void Ask(const grpc::ByteBuffer& request);
  void Send(Answer answer);
  void WriteNext();
  void GiveUpIfCancelled();

  DataPlaneEngine& engine_;
  size_t chunk_bytes_;
  Encoding encoding_ = Encoding::kFp32;
  bool wants_trailer_ = false;
  std::atomic<bool> is_cancelled_ = false;
  CallGuard guard_;
  Reader reader_;  // Set before the engine is asked.

  // Written by the thread that gives the answer, then by OnWriteDone: one after another.
  std::optional<Answer> waiting_;  // For a thread that may take its time.
  std::optional<ChunkedAnswer> answer_;
  grpc::ByteBuffer message_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_DATA_PLANE_PULL_CALL_H_
