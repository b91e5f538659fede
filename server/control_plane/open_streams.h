#ifndef SLIPSTREAM_SERVER_CONTROL_PLANE_OPEN_STREAMS_H_
#define SLIPSTREAM_SERVER_CONTROL_PLANE_OPEN_STREAMS_H_

#include <grpcpp/server_context.h>

#include <cstddef>
#include <set>

#include "absl/status/status.h"
#include "common/base/mutex.h"

namespace slipstream {

/// Keeps the open streams of a service, so that their number is bounded and a server that stops
/// does not wait for clients to end them.
///
/// Thread-safe: guarded by its own mutex.
class OpenStreams {
 public:
  explicit OpenStreams(size_t streams_max) : streams_max_(streams_max) {}

  /// Adds a stream. Fails with RESOURCE_EXHAUSTED if there are too many, with UNAVAILABLE after
  /// Stop. `context` must be valid until it is removed, and may be removed without having been
  /// added.
  absl::Status Add(grpc::CallbackServerContext* context) {
    MutexLock lock(mutex_);
    if (is_stopping_) return absl::UnavailableError("the server is stopping");
    if (streams_.size() >= streams_max_) {
      return absl::ResourceExhaustedError("too many streams are open");
    }
    streams_.insert(context);
    return absl::OkStatus();
  }

  void Remove(grpc::CallbackServerContext* context) {
    MutexLock lock(mutex_);
    streams_.erase(context);
  }

  /// Cancels all streams, and lets no other be added.
  void Stop() {
    MutexLock lock(mutex_);
    is_stopping_ = true;
    for (grpc::CallbackServerContext* context : streams_) context->TryCancel();
  }

 private:
  const size_t streams_max_;

  Mutex mutex_;
  std::set<grpc::CallbackServerContext*> streams_ ABSL_GUARDED_BY(mutex_);
  bool is_stopping_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CONTROL_PLANE_OPEN_STREAMS_H_
