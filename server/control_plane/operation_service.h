#ifndef SLIPSTREAM_SERVER_CONTROL_PLANE_OPERATION_SERVICE_H_
#define SLIPSTREAM_SERVER_CONTROL_PLANE_OPERATION_SERVICE_H_

#include <grpcpp/support/server_callback.h>

#include <set>

#include "absl/base/thread_annotations.h"
#include "common/base/mutex.h"
#include "proto/operation.grpc.pb.h"
#include "server/listen/connections.h"

namespace slipstream {

/// Serves what an operator asks of the process of one server: that it drains and ends. It only
/// notes that somebody has asked; its owner drains the process, and then has the calls answered.
///
/// Thread-safe: guarded by its own mutex. Must outlive the gRPC server that it is registered with.
class OperationService final : public v1::Operation::CallbackService {
 public:
  /// `connections` are those of the server; null if nothing bounds them.
  explicit OperationService(Connections* connections) : connections_(connections) {}

  grpc::ServerUnaryReactor* Drain(grpc::CallbackServerContext* context,
                                  const v1::DrainRequest* request, v1::DrainReply* reply) override;

  /// Returns whether the process is to drain.
  bool is_asked_to_drain();

  /// Answers the calls. Later ones are refused with UNAVAILABLE.
  void OnDrained(const v1::DrainReply& result);

 private:
  class Call;

  /// Takes the call up, or returns why it is refused.
  absl::Status Admit(Call* call);
  void Cancel(Call* call);

  Connections* const connections_;

  Mutex mutex_;

  // A call stays in here until a thread takes it out to finish it.
  std::set<Call*> calls_ ABSL_GUARDED_BY(mutex_);
  bool is_asked_ ABSL_GUARDED_BY(mutex_) = false;
  bool has_drained_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CONTROL_PLANE_OPERATION_SERVICE_H_
