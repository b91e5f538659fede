#ifndef SLIPSTREAM_TESTS_GPU_SIMULATED_WORK_QUEUE_H_
#define SLIPSTREAM_TESTS_GPU_SIMULATED_WORK_QUEUE_H_

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "common/base/mutex.h"
#include "common/base/philox.h"

namespace slipstream::simulated {

/// Something the device does once what it comes after is done.
struct Work {
  std::function<void()> run;
  std::vector<std::shared_ptr<Work>> after;  // Empty once done.
  bool is_done = false;                      // Both guarded by the queue's mutex.
};
using WorkPtr = std::shared_ptr<Work>;

/// The device's only processor: a thread that does one piece of work after another. When it takes
/// the next is drawn, and which of those that may be next then, so that whatever is not ordered by
/// the caller happens in another order sooner or later.
///
/// Thread-safe: guarded by its own mutex.
class WorkQueue {
 public:
  /// Of the process; never destroyed, as plans may outlive static objects.
  static WorkQueue& Get();

  /// A null entry of `after` is done.
  WorkPtr Add(std::function<void()> run, std::vector<WorkPtr> after);

  bool IsDone(const WorkPtr& work);
  void Await(const WorkPtr& work);

  /// For everything added so far.
  void AwaitAll();

  /// The device is gone after so many pieces of work more: those that follow are dropped, and from
  /// the first of them on is_lost(). UINT64_MAX brings it back.
  void LoseAfter(uint64_t pieces);
  bool is_lost();

 private:
  explicit WorkQueue(uint64_t seed);

  void Run();
  void LetTimePass();
  WorkPtr TakeNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Mutex mutex_;
  CondVar changed_;
  RandomStream random_ ABSL_GUARDED_BY(mutex_);
  std::vector<WorkPtr> waiting_ ABSL_GUARDED_BY(mutex_);  // In the order in which they were added.
  WorkPtr running_ ABSL_GUARDED_BY(mutex_);
  uint64_t pieces_left_ ABSL_GUARDED_BY(mutex_) = UINT64_MAX;
  bool is_lost_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace slipstream::simulated

#endif  // SLIPSTREAM_TESTS_GPU_SIMULATED_WORK_QUEUE_H_
