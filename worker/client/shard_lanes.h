#ifndef SLIPSTREAM_WORKER_CLIENT_SHARD_LANES_H_
#define SLIPSTREAM_WORKER_CLIENT_SHARD_LANES_H_

#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "common/base/ids.h"
#include "common/base/mutex.h"

namespace slipstream {

/// One lane per shard, so that a step talks to all of them at once: threads that last as long as
/// this object, but for the first shard's lane, which is the caller's own thread.
///
/// Not thread-safe: one owner, which calls Run.
class ShardLanes {
 public:
  using Work = std::function<absl::Status(ShardId)>;

  explicit ShardLanes(uint32_t shards);
  ~ShardLanes();
  ShardLanes(const ShardLanes&) = delete;
  ShardLanes& operator=(const ShardLanes&) = delete;

  /// Calls `work` for each of `shards` (in rising order), each in its lane, and returns once all
  /// have returned: OK, or the failure that came first; CANCELLED only if there is no other.
  absl::Status Run(const std::vector<ShardId>& shards, const Work& work);

 private:
  void Serve(uint32_t shard);
  void Note(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Mutex mutex_;
  CondVar work_changed_;
  CondVar lane_done_;
  std::vector<const Work*> work_ ABSL_GUARDED_BY(mutex_);  // Per lane; nullptr for none.
  uint32_t busy_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status first_failure_ ABSL_GUARDED_BY(mutex_);
  bool is_closing_ ABSL_GUARDED_BY(mutex_) = false;

  std::vector<std::thread> threads_;  // Of the lanes from 1 on.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_CLIENT_SHARD_LANES_H_
