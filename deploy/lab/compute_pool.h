#ifndef SLIPSTREAM_DEPLOY_LAB_COMPUTE_POOL_H_
#define SLIPSTREAM_DEPLOY_LAB_COMPUTE_POOL_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "common/base/mutex.h"
#include "deploy/lab/compute_lane.h"

namespace slipstream {

/// Computes what virtual workers compute, on real threads. A job's inputs are fixed when it is
/// begun, and its result is used at a known moment of virtual time; so it may be computed at any
/// time before that, on any lane, and the run does not depend on the number of threads. Jobs that
/// are due first are computed first.
///
/// The thread that awaits results computes, too, while it would have to wait.
///
/// Not thread-safe: one owner.
class ComputePool {
 public:
  using Work = std::function<void(ComputeLane&)>;

  /// A piece of work under way.
  class Job {
   private:
    friend class ComputePool;
    Work work_;
    std::pair<absl::Time, uint64_t> place_;  // In the queue.
    enum class State : uint8_t { kWaiting, kRunning, kDone } state_ = State::kWaiting;
  };

  /// Each lane but the first gets a thread of its own. REQUIRES: there is a lane.
  explicit ComputePool(std::vector<std::unique_ptr<ComputeLane>> lanes);

  /// Drops the jobs that nobody has begun, and waits for the others.
  ~ComputePool();
  ComputePool(const ComputePool&) = delete;
  ComputePool& operator=(const ComputePool&) = delete;

  /// Begins a job whose result is needed at `due`. What `work` captures must stay as it is until
  /// the job was awaited or dropped.
  std::shared_ptr<Job> Start(absl::Time due, Work work);

  /// Returns once the job is done.
  void Await(Job& job);

  /// Returns how long processors have computed jobs.
  absl::Duration computed();

  /// Forgets a job whose result nobody needs; waits for it if it has begun.
  void Drop(Job& job);

 private:
  void Run(ComputeLane& lane);

  /// Takes the job that is due first out of the queue. REQUIRES: there is one.
  std::shared_ptr<Job> TakeFirst() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Compute(Job& job, ComputeLane& lane);

  const std::vector<std::unique_ptr<ComputeLane>> lanes_;
  uint64_t jobs_begun_ = 0;

  Mutex mutex_;
  CondVar changed_;
  std::map<std::pair<absl::Time, uint64_t>, std::shared_ptr<Job>> waiting_ ABSL_GUARDED_BY(mutex_);
  bool is_ending_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Duration computed_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_LAB_COMPUTE_POOL_H_
