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

/// A piece of work that a device does once all pieces in `after` are done.
struct Work {
  int device = 0;
  std::function<void()> run;
  std::vector<std::shared_ptr<Work>> after;  // Empty once done; guarded by the queue's mutex.
  std::function<bool()> may_begin;           // If set, a further condition; for the queue's thread.
  bool is_of_graph = false;
  bool is_done = false;  // Guarded by the queue's mutex.
};
using WorkPtr = std::shared_ptr<Work>;

/// The only processor of all devices: a thread that does one piece of work after another. It is
/// random when it takes the next piece, and which of the pieces that are ready. So work that the
/// caller has not ordered sooner or later happens in different orders.
///
/// Thread-safe: guarded by its own mutex.
class WorkQueue {
 public:
  /// Returns the queue of the process. It is never destroyed, as plans may outlive static objects.
  static WorkQueue& Get();

  /// Adds a piece of work. A null entry of `after` counts as done.
  WorkPtr Add(Work work);

  bool IsDone(const WorkPtr& work);
  void Await(const WorkPtr& work);

  /// Waits for all work added so far.
  void AwaitAll();

  /// Tells the queue that the result of a may_begin has changed.
  void Wake();

  /// Loses the device after `pieces` more pieces of work, counted over all devices. Its later
  /// pieces are dropped, and IsLost returns true. UINT64_MAX brings the device back.
  void LoseAfter(uint64_t pieces, int device = 0);
  bool IsLost(int device);

  /// Holds back graphs after `pieces` more of their pieces, until it is called again. UINT64_MAX
  /// holds none back.
  void HoldGraphsAfter(uint64_t pieces);

  /// The number of pieces of graphs done since the process began.
  uint64_t graph_pieces();

 private:
  explicit WorkQueue(uint64_t seed);

  void Run();
  void LetTimePass();
  bool IsReady(const Work& work) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  /// Returns null if no waiting piece is ready.
  WorkPtr TakeNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Mutex mutex_;
  CondVar changed_;
  RandomStream random_ ABSL_GUARDED_BY(mutex_);
  std::vector<WorkPtr> waiting_ ABSL_GUARDED_BY(mutex_);  // In the order of Add.
  WorkPtr running_ ABSL_GUARDED_BY(mutex_);
  uint64_t pieces_left_ ABSL_GUARDED_BY(mutex_) = UINT64_MAX;
  int losing_ ABSL_GUARDED_BY(mutex_) = 0;  // The device to lose then.
  std::optional<int> lost_ ABSL_GUARDED_BY(mutex_);
  uint64_t graph_pieces_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t graph_pieces_max_ ABSL_GUARDED_BY(mutex_) = UINT64_MAX;
  std::thread thread_;
};

}  // namespace slipstream::simulated

#endif  // SLIPSTREAM_TESTS_GPU_SIMULATED_WORK_QUEUE_H_
