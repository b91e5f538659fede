#ifndef SLIPSTREAM_WORKER_TRAINING_BATCH_FEED_H_
#define SLIPSTREAM_WORKER_TRAINING_BATCH_FEED_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <thread>
#include <vector>

#include "common/base/mutex.h"
#include "worker/compute/plan.h"
#include "worker/data/batch_order.h"
#include "worker/data/dataset.h"
#include "worker/data/gather_examples.h"

namespace slipstream {

/// Provides the mini-batches of one plan's steps. A plan that keeps the data set is told which of
/// its examples make up a batch; for any other plan they are gathered. If the plan has its own
/// space for batches, a thread gathers the batch of the next step there while the current one is
/// computed. The thread guesses that batch as index + the last stride that occurred twice in a row,
/// which is the number of plans that take batches in turn. A wrong guess costs the time to gather a
/// batch and, around the end of an epoch, the time to compute the epoch's permutation.
///
/// Not thread-safe: one owner, the plan's.
class BatchFeed {
 public:
  /// Asks the plan to keep the data set. `train` and `plan` must outlive the feed.
  BatchFeed(const Dataset& train, uint32_t batch_size, uint64_t seed, Plan& plan);
  ~BatchFeed();
  BatchFeed(const BatchFeed&) = delete;
  BatchFeed& operator=(const BatchFeed&) = delete;

  /// Returns mini-batch `index` of the run; valid until the next call.
  Batch Take(uint64_t index);

  /// The number of batches that were ready when they were taken; for tests.
  uint64_t guessed() const { return guessed_; }

 private:
  void Run();
  Batch Gather(uint64_t index);

  /// Waits until the thread is idle, and returns the batch that it gathered, if any.
  std::optional<Batch> AwaitThread();
  void Guess(uint64_t index);

  // Constant after construction.
  const Dataset& train_;
  Plan& plan_;
  const bool plan_keeps_examples_;

  // Used by the gathering thread: `thread_` while a batch is asked of it, else the owner.
  BatchOrder order_;
  ExampleGatherer gatherer_;
  bool plan_has_space_ = true;  // Assumed until a request fails.
  std::vector<float> examples_;
  std::vector<uint32_t> labels_;
  std::vector<float> targets_;

  // Used by the owner only.
  std::optional<Batch> taken_;
  uint64_t last_stride_ = 1;
  uint64_t stride_ = 1;  // The last stride that occurred twice in a row.
  uint64_t guessed_ = 0;

  Mutex mutex_;
  CondVar changed_;
  std::optional<uint64_t> asked_ ABSL_GUARDED_BY(mutex_);
  std::optional<Batch> gathered_ ABSL_GUARDED_BY(mutex_);
  bool is_ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // Started with the first guess.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_TRAINING_BATCH_FEED_H_
