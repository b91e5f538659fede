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

/// The mini-batches of one plan's steps. A plan that keeps the data set is told which of its
/// examples a batch is of; for all others they are gathered. Where the plan has space of its own
/// for them, the batch that the next step will probably be of is put there by a thread, while the
/// one before is computed: index + the stride that batches last had twice in a row, which is the
/// number of plans that take batches in turn. A wrong guess costs the time of a gathering, and
/// around the end of an epoch that of its permutation.
///
/// Not thread-safe: one owner, the plan's.
class BatchFeed {
 public:
  /// Asks the plan to keep the data set. `train` and `plan` must outlive it.
  BatchFeed(const Dataset& train, uint32_t batch_size, uint64_t seed, Plan& plan);
  ~BatchFeed();
  BatchFeed(const BatchFeed&) = delete;
  BatchFeed& operator=(const BatchFeed&) = delete;

  /// Mini-batch `index` of the run; valid until the next call.
  Batch Take(uint64_t index);

  /// Batches that were there already when they were taken; for tests.
  uint64_t guessed() const { return guessed_; }

 private:
  void Run();
  Batch Gather(uint64_t index);

  /// Waits until the thread has nothing to do; what it has gathered.
  std::optional<Batch> AwaitThread();
  void Guess(uint64_t index);

  // Constant after construction.
  const Dataset& train_;
  Plan& plan_;
  const bool plan_keeps_examples_;

  // Of whoever gathers: the thread while something is asked of it, or else the owner.
  BatchOrder order_;
  ExampleGatherer gatherer_;
  bool plan_has_space_ = true;  // Until it has none.
  std::vector<float> examples_;
  std::vector<uint32_t> labels_;
  std::vector<float> targets_;

  // Of the owner.
  std::optional<Batch> taken_;
  uint64_t last_stride_ = 1;
  uint64_t stride_ = 1;  // Of the last two that were equal.
  uint64_t guessed_ = 0;

  Mutex mutex_;
  CondVar changed_;
  std::optional<uint64_t> asked_ ABSL_GUARDED_BY(mutex_);
  std::optional<Batch> gathered_ ABSL_GUARDED_BY(mutex_);
  bool is_ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // Begun with the first guess.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_TRAINING_BATCH_FEED_H_
