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

/// One lane per shard, so that a step talks to all of them at once, beside the thread that
/// computes.
///
/// A lane does what it is given one after another, in order. Its thread is started with its first
/// work and lasts as long as this object; only Run lets the caller's thread serve the first shard's
/// lane, if that is idle, which spares a small model's step the way to another thread and back.
///
/// Not thread-safe: one owner, which starts and runs.
class ShardLanes {
 public:
  using Work = std::function<absl::Status(ShardId)>;

  explicit ShardLanes(uint32_t shards);

  /// Waits for work under way; what has not begun is dropped.
  ~ShardLanes();
  ShardLanes(const ShardLanes&) = delete;
  ShardLanes& operator=(const ShardLanes&) = delete;

  /// Gives `work` to the lanes of `shards` and returns at once. What it returns is ignored.
  void Start(const std::vector<ShardId>& shards, Work work);

  /// Calls `work` for each of `shards`, each in its lane, and returns once all have returned: OK,
  /// or the failure that came first; CANCELLED only if there is no other.
  absl::Status Run(const std::vector<ShardId>& shards, Work work);

 private:
  /// One piece of work, in several lanes. Owned by the lanes that have it before them and by Run.
  struct Job {
    explicit Job(Work given) : work(std::move(given)) {}

    const Work work;
    uint32_t left = 0;  // Lanes that have not done it.
    FirstFailure failure;
  };
  struct Lane {
    std::thread thread;
    CondVar changed;
    std::deque<std::shared_ptr<Job>> jobs;  // The first is being done if `is_busy`.
    bool is_busy = false;
  };

  std::shared_ptr<Job> Give(const std::vector<ShardId>& shards, Work work)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Wake(ShardId shard) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  /// Throws if there is no thread to be had: before any lane has begun what the caller then lets
  /// go.
  void MakeThread(ShardId shard) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Serve(ShardId shard);

  /// Does the first job of an idle lane; the lock is not held meanwhile.
  void DoNext(ShardId shard);

  Mutex mutex_;
  CondVar job_done_;
  std::vector<Lane> lanes_ ABSL_GUARDED_BY(mutex_);
  bool is_closing_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_CLIENT_SHARD_LANES_H_
