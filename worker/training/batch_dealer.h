#ifndef SLIPSTREAM_WORKER_TRAINING_BATCH_DEALER_H_
#define SLIPSTREAM_WORKER_TRAINING_BATCH_DEALER_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "common/base/mutex.h"
#include "common/protocol/batch_ranges.h"

namespace slipstream {

/// Deals the mini-batches of one push out to the threads that compute them, in their order and each
/// once.
///
/// Thread-safe: guarded by its own mutex.
class BatchDealer {
 public:
  explicit BatchDealer(const BatchRanges& batches) : batches_(batches) {}

  /// Returns the next mini-batch; nothing if all are dealt out, or if dealing was stopped.
  std::optional<uint64_t> Take() {
    MutexLock lock(mutex_);
    while (range_ < batches_.size() && taken_ == batches_[range_].count) {
      ++range_;
      taken_ = 0;
    }
    if (range_ == batches_.size()) return std::nullopt;
    return batches_[range_].first + taken_++;
  }

  /// Deals out no more.
  void Stop() {
    MutexLock lock(mutex_);
    range_ = batches_.size();
  }

 private:
  const BatchRanges batches_;

  Mutex mutex_;
  size_t range_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t taken_ ABSL_GUARDED_BY(mutex_) = 0;  // Mini-batches of this range that are dealt out.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_TRAINING_BATCH_DEALER_H_
