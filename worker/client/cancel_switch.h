#ifndef SLIPSTREAM_WORKER_CLIENT_CANCEL_SWITCH_H_
#define SLIPSTREAM_WORKER_CLIENT_CANCEL_SWITCH_H_

#include <grpcpp/client_context.h>

#include <set>

#include "common/base/mutex.h"

namespace slipstream {

/// Cancels the calls of a client that must not wait any longer. Any thread may throw the switch,
/// and it stays thrown.
///
/// Thread-safe: guarded by its own mutex; never blocks on I/O.
class CancelSwitch {
 public:
  /// Cancels the calls that are attached, and every call that is attached later.
  void Throw() {
    MutexLock lock(mutex_);
    is_thrown_ = true;
    for (grpc::ClientContext* call : calls_) call->TryCancel();
  }

  bool thrown() const {
    MutexLock lock(mutex_);
    return is_thrown_;
  }

  /// The switch may cancel `call` from Attach until Detach; `call` must live that long.
  void Attach(grpc::ClientContext* call) {
    MutexLock lock(mutex_);
    calls_.insert(call);
    if (is_thrown_) call->TryCancel();
  }
  void Detach(grpc::ClientContext* call) {
    MutexLock lock(mutex_);
    calls_.erase(call);
  }

 private:
  mutable Mutex mutex_;
  bool is_thrown_ ABSL_GUARDED_BY(mutex_) = false;
  std::set<grpc::ClientContext*> calls_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_CLIENT_CANCEL_SWITCH_H_
