#ifndef SLIPSTREAM_SERVER_CONTROL_PLANE_STATUS_WATCHERS_H_
#define SLIPSTREAM_SERVER_CONTROL_PLANE_STATUS_WATCHERS_H_

#include <grpcpp/support/server_callback.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <set>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/mutex.h"
#include "proto/coordinator.pb.h"
#include "proto/status.pb.h"
#include "server/listen/caller.h"

namespace slipstream {

/// Serves the calls of WatchStatus: each gets the status at once, then again and again at its
/// interval, and a last time when the run is over, which ends the call.
///
/// No thread belongs to a call: the owner calls Tick as time passes. A call has at most one message
/// on its way. A reader that is slower than its interval gets fewer statuses, never old ones.
///
/// Thread-safe: guarded by its own mutex, under which nothing is asked and nothing written.
class StatusWatchers {
 public:
  static constexpr absl::Duration kIntervalMin = absl::Milliseconds(100);
  static constexpr absl::Duration kIntervalMax = absl::Hours(1);
  static constexpr absl::Duration kIntervalDefault = absl::Seconds(1);

  /// The most watchers; further ones are refused with RESOURCE_EXHAUSTED. A status takes some
  /// hundred bytes for each worker and shard, and each watcher may want ten a second.
  static constexpr size_t kWatchersMax = 64;

  /// How long a watcher may take to read a status before its call is ended, and how long while
  /// there is no place for another watcher.
  static constexpr absl::Duration kReadTimeMax = absl::Seconds(30);
  static constexpr absl::Duration kReadTimePressed = absl::Seconds(2);

  /// Returns the status. Called without a lock, from any thread, and at most once for all calls
  /// that are due.
  using Ask = std::function<v1::RunStatus()>;

  explicit StatusWatchers(Ask ask) : ask_(std::move(ask)) {}

  /// Takes up the call of `context`. `caller` is who makes it, and may be null. An interval out of
  /// bounds is refused with INVALID_ARGUMENT.
  grpc::ServerWriteReactor<v1::RunStatus>* Watch(grpc::CallbackServerContext& context,
                                                 const v1::WatchStatusRequest& request,
                                                 absl::Time now,
                                                 std::unique_ptr<Caller> caller = nullptr);

  /// Sends the status to the calls that are due; to all, for the last time, if the run is over.
  /// Ends the calls that take too long to read one.
  void Tick(absl::Time now, bool run_is_over);

  /// Ends the calls with UNAVAILABLE, after the messages on their way, and takes no others.
  void Stop();

  size_t size();

 private:
  class Call;

  absl::Status Admit(Call* call) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndStalled(absl::Time now);
  void Send(const std::set<Call*>& calls);
  void OnWritten(Call* call, bool ok);
  void OnCancelled(Call* call);

  // Constant after construction.
  const Ask ask_;

  Mutex mutex_;

  // A call stays in here until a thread takes it out to finish it.
  std::set<Call*> calls_ ABSL_GUARDED_BY(mutex_);
  bool is_stopping_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CONTROL_PLANE_STATUS_WATCHERS_H_
