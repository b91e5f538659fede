#ifndef SLIPSTREAM_TESTS_GPU_SIMULATED_WORK_QUEUE_H_
#define SLIPSTREAM_TESTS_GPU_SIMULATED_WORK_QUEUE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "common/base/mutex.h"
#include "common/base/philox.h"

namespace slipstream::simulated {

/// Something that a device does once what it comes after is done.
struct Work {
  int device = 0;
  std::function<void()> run;
  std::vector<std::shared_ptr<Work>> after;  // Empty once done; guarded by the queue's mutex.
  std::function<bool()> may_begin;           // Besides; if set. Asked by the queue's thread.
  bool is_of_graph = false;
  bool is_done = false;  // Guarded by the queue's mutex.
};
using WorkPtr = std::shared_ptr<Work>;

/// The only processor of all devices: a thread that does one piece of work after another. When it
/// takes the next is drawn, and which of those that may be next then, so that whatever is not
/// ordered by the caller happens in another order sooner or later.
///
/// Thread-safe: guarded by its own mutex.
class WorkQueue {
 public:
  /// Of the process; never destroyed, as plans may outlive static objects.
  static WorkQueue& Get();

  /// A null entry of `after` is done.
  WorkPtr Add(Work work);

  bool IsDone(const WorkPtr& work);
  void Await(const WorkPtr& work);

  /// For everything added so far.
  void AwaitAll();

  /// A may_begin has another answer.
  void Wake();

  /// The device is gone after so many pieces of work more, of all devices: those of it that follow
  /// are dropped, and it IsLost. UINT64_MAX brings it back.
  void LoseAfter(uint64_t pieces, int device = 0);
  bool IsLost(int device);

  /// So many pieces of graphs are done from now on, and the others not before this is set anew.
  /// UINT64_MAX holds none back.
  void HoldGraphsAfter(uint64_t pieces);

  /// Of graphs, done since the process began.
  uint64_t graph_pieces();

 private:
  explicit WorkQueue(uint64_t seed);

  void Run();
  void LetTimePass();
  bool IsReady(const Work& work) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  /// Null if all that is here waits for what is not.
  WorkPtr TakeNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Mutex mutex_;
  CondVar changed_;
  RandomStream random_ ABSL_GUARDED_BY(mutex_);
  std::vector<WorkPtr> waiting_ ABSL_GUARDED_BY(mutex_);  // In the order in which they were added.
  WorkPtr running_ ABSL_GUARDED_BY(mutex_);
  uint64_t pieces_left_ ABSL_GUARDED_BY(mutex_) = UINT64_MAX;
  int losing_ ABSL_GUARDED_BY(mutex_) = 0;  // The device that goes then.
  std::optional<int> lost_ ABSL_GUARDED_BY(mutex_);
  uint64_t graph_pieces_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t graph_pieces_max_ ABSL_GUARDED_BY(mutex_) = UINT64_MAX;
  std::thread thread_;
};

}  // namespace slipstream::simulated

#endif  // SLIPSTREAM_TESTS_GPU_SIMULATED_WORK_QUEUE_H_
