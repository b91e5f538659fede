#ifndef SLIPSTREAM_WORKER_CLIENT_CANCEL_SWITCH_H_
#define SLIPSTREAM_WORKER_CLIENT_CANCEL_SWITCH_H_

#include <grpcpp/client_context.h>

#include <set>

#include "common/base/mutex.h"

namespace slipstream {

/// Cancels the calls of a client that must not wait any longer. Any thread may throw the switch,
/// and it stays thrown.
///
/// A part of a client that may end before the rest has a switch of its own below the client's:
/// throwing the upper one throws the lower one, too, and not the other way round.
///
/// Thread-safe: guarded by its own mutex, which is taken after that of the switch above; never
/// blocks on I/O.
class CancelSwitch {
 public:
  CancelSwitch() = default;

  /// A switch below `above`, which must outlive it.
  explicit CancelSwitch(CancelSwitch* above) : above_(above) {
    MutexLock lock(above_->mutex_);
    above_->below_.insert(this);
    if (above_->is_thrown_) Throw();
  }
  ~CancelSwitch() {
    if (above_ == nullptr) return;
    MutexLock lock(above_->mutex_);
    above_->below_.erase(this);
  }
  CancelSwitch(const CancelSwitch&) = delete;
  CancelSwitch& operator=(const CancelSwitch&) = delete;

  /// Cancels the calls that are attached, and every call that is attached later.
  void Throw() {
    MutexLock lock(mutex_);
    is_thrown_ = true;
    for (grpc::ClientContext* call : calls_) call->TryCancel();
    for (CancelSwitch* below : below_) below->Throw();
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
  CancelSwitch* const above_ = nullptr;
  mutable Mutex mutex_;
  bool is_thrown_ ABSL_GUARDED_BY(mutex_) = false;
  std::set<grpc::ClientContext*> calls_ ABSL_GUARDED_BY(mutex_);
  std::set<CancelSwitch*> below_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_CLIENT_CANCEL_SWITCH_H_
