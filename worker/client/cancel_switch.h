#ifndef SLIPSTREAM_WORKER_CLIENT_CANCEL_SWITCH_H_
#define SLIPSTREAM_WORKER_CLIENT_CANCEL_SWITCH_H_

#include <grpcpp/client_context.h>

#include <set>

#include "common/base/mutex.h"

namespace slipstream {

/// Ends the calls of a client that must not wait any longer, from any thread and for good.
///
/// Thread-safe: guarded by its own mutex; never blocks on I/O.
class CancelSwitch {
 public:
  /// Cancels the calls under way and all that start later.
  void Throw() {
    MutexLock lock(mutex_);
    is_thrown_ = true;
    for (grpc::ClientContext* call : calls_) call->TryCancel();
  }

  bool thrown() const {
    MutexLock lock(mutex_);
    return is_thrown_;
  }

  /// `call` must outlive its time between the two.
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
