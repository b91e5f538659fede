#ifndef SLIPSTREAM_WORKER_CLIENT_SHARD_GROUP_H_
#define SLIPSTREAM_WORKER_CLIENT_SHARD_GROUP_H_

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "common/base/ids.h"
#include "common/base/mutex.h"
#include "common/layout/shard_map.h"
#include "worker/client/cancel_switch.h"
#include "worker/client/first_failure.h"
#include "worker/client/shard_client.h"
#include "worker/client/shard_options.h"

namespace slipstream {

/// All shards of a model, each with a client in a lane of its own, so that a step talks to all of
/// them at once and in parallel with the thread that computes.
///
/// A lane does its work in the order in which it was given. Its thread is started with its first
/// work and lasts as long as this object. As an exception, Run and Try serve the first shard's lane
/// on the caller's thread if that lane is idle, which saves a small model's step two thread
/// switches.
///
/// Not thread-safe: one owner; work in a lane may call EndCalls, and other threads may throw the
/// CancelSwitch.
class ShardGroup {
 public:
  /// The work that a lane does with its shard.
  using Work = std::function<absl::Status(ShardClient&)>;

  /// `servers`: the addresses in the order of the map's shards. `aggregators`: those of the
  /// worker's group, in the same order; empty if it has none. `cancel` must outlive the group.
  ShardGroup(const std::vector<std::string>& servers, const ShardMap& map,
             const ShardOptions& options, const Sleeper& sleeper, CancelSwitch& cancel,
             const std::vector<std::string>& aggregators = {});

  /// Waits for work under way; drops work that has not begun.
  ~ShardGroup();
  ShardGroup(const ShardGroup&) = delete;
  ShardGroup& operator=(const ShardGroup&) = delete;

  /// Calls `work` for each of `shards` in its lane, and returns once all have returned: OK, or the
  /// first failure, where CANCELLED counts only if there is no other. A failure cancels the calls
  /// of the others, because the worker cannot continue without that shard.
  absl::Status Run(const std::vector<ShardId>& shards, const Work& work);

  /// The same, but a failure cancels nothing: the group can be used on.
  absl::Status Try(const std::vector<ShardId>& shards, Work work);

  /// Queues `work` in the lane of each of `shards`, behind its earlier work, and returns at once.
  /// If `work` fails, it calls EndCalls itself before it reports the failure to anyone.
  void Start(const std::vector<ShardId>& shards, Work work);

  /// Cancels the calls under way on all shards, and every later one.
  void EndCalls() { cancel_.Throw(); }

  const ShardMap& map() const { return map_; }
  const std::vector<ShardId>& all() const { return all_; }

 private:
  /// One piece of work, in several lanes. Owned by the lanes that have it queued and by Try.
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

  // Constant after construction.
  const ShardMap map_;
  std::vector<ShardId> all_;

  CancelSwitch& cancel_;
  std::vector<std::unique_ptr<ShardClient>> clients_;  // Each is used by its lane.

  Mutex mutex_;
  CondVar job_done_;
  std::vector<Lane> lanes_ ABSL_GUARDED_BY(mutex_);
  bool is_closing_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_CLIENT_SHARD_GROUP_H_
