#ifndef SLIPSTREAM_SERVER_DATA_PLANE_IN_PLACE_WEIGHTS_H_
#define SLIPSTREAM_SERVER_DATA_PLANE_IN_PLACE_WEIGHTS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "common/base/mutex.h"
#include "common/kernels/rules/tensor_rules.h"
#include "common/kernels/rules/update_rule.h"
#include "common/memory/block_locks.h"
#include "common/wire/values_codec.h"
#include "server/storage/buffer_pool.h"

namespace slipstream {

/// The weights of a shard to which gradients are added where they lie
/// (WeightsMaker::kServersInPlace). Any number of threads add and copy at once, under the locks of
/// block_locks.h: no addition is lost, but a copy may hold some blocks of a gradient and not the
/// others.
///
/// Thread-safe.
class InPlaceWeights {
 public:
  /// How one gradient is added.
  struct Terms {
    float weight = 1;
    float inverse_divisor = 1;
    StepSize step;
    const TensorRules* rules = nullptr;
  };

  /// The weights and their copies are buffers of `pool`.
  explicit InPlaceWeights(BufferPool pool)
      : pool_(std::move(pool)), values_(pool_.Take()), locks_(values_->values().size()) {}

  /// The weights themselves. While others add, only their size may be read.
  Weights live() const { return values_; }

  /// Replaces the weights. Where initialisation is granted anew, it may come again.
  void Set(const FloatBuffer& initial);

  /// Adds a part of a gradient to the weights from position `begin` on. REQUIRES: the rule adds
  /// (RuleRow::adds).
  void Add(size_t begin, const ReceivedValues& gradient, const Terms& terms);

  /// Returns a copy with everything whose Add had returned before, and perhaps parts of more.
  Weights Copy();

 private:
  BufferPool pool_;
  const std::shared_ptr<FloatBuffer> values_;
  BlockLocks locks_;  // For `values_`.
};

/// A version, as it is read, of weights that change in place. It is copied when somebody first
/// asks for it, and then is the same for all; so readers of one version share its memory.
///
/// Thread-safe: guarded by its own mutex, which is held while the weights are copied.
class InPlaceVersion {
 public:
  explicit InPlaceVersion(std::shared_ptr<InPlaceWeights> weights) : weights_(std::move(weights)) {}

  Weights Get() {
    const MutexLock lock(mutex_);
    if (copy_ == nullptr) copy_ = weights_->Copy();
    return copy_;
  }

 private:
  const std::shared_ptr<InPlaceWeights> weights_;
  Mutex mutex_;
  Weights copy_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_DATA_PLANE_IN_PLACE_WEIGHTS_H_
