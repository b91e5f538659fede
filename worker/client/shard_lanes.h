#ifndef SLIPSTREAM_WORKER_CLIENT_SHARD_LANES_H_
#define SLIPSTREAM_WORKER_CLIENT_SHARD_LANES_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "common/base/ids.h"
#include "common/base/mutex.h"
#include "worker/client/first_failure.h"

namespace slipstream {

/// One lane per shard, so that a step talks to all shards at once and in parallel with the thread
/// that computes.
///
/// A lane does its work in the order in which it was given. Its thread is started with its first
/// work and lasts as long as this object. As an exception, Run serves the first shard's lane on the
/// caller's thread if that lane is idle, which saves a small model's step two thread switches.
///
/// Not thread-safe: one owner, which calls Start and Run.
class ShardLanes {
 public:
  using Work = std::function<absl::Status(ShardId)>;

  explicit ShardLanes(uint32_t shards);

  /// Waits for work under way; drops work that has not begun.
  ~ShardLanes();
  ShardLanes(const ShardLanes&) = delete;
  ShardLanes& operator=(const ShardLanes&) = delete;

  /// Queues `work` in the lanes of `shards` and returns at once. The result of `work` is ignored.
  void Start(const std::vector<ShardId>& shards, Work work);

  /// Calls `work` for each of `shards` in its lane, and returns once all have returned: OK, or the
  /// first failure, where CANCELLED counts only if there is no other.
  absl::Status Run(const std::vector<ShardId>& shards, Work work);

 private:
  /// One piece of work, in several lanes. Owned by the lanes that have it queued and by Run.
  struct Job {
    explicit Job(Work given) : work(std::move(given)) {}

    const Work work;
    uint32_t left = 0;  // The number of lanes that have not done it.
    FirstFailure failure;
  };
  struct Lane {
    std::thread thread;
    CondVar changed;
    std::deque<std::shared_ptr<Job>> jobs;  // If `is_busy`, the first is being done.
    bool is_busy = false;
  };

  std::shared_ptr<Job> Give(const std::vector<ShardId>& shards, Work work)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Wake(ShardId shard) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  /// Starts the lane's thread if it has none. Throws if no thread can be started. It is called
  /// before any work is queued, so that no lane uses objects that the caller drops then.
  void MakeThread(ShardId shard) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Serve(ShardId shard);

  /// Does the first job of an idle lane. The lock is not held while the job runs.
  void DoNext(ShardId shard);

  Mutex mutex_;
  CondVar job_done_;
  std::vector<Lane> lanes_ ABSL_GUARDED_BY(mutex_);
  bool is_closing_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_CLIENT_SHARD_LANES_H_
