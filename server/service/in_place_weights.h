#ifndef SLIPSTREAM_SERVER_SERVICE_IN_PLACE_WEIGHTS_H_
#define SLIPSTREAM_SERVER_SERVICE_IN_PLACE_WEIGHTS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "common/base/mutex.h"
#include "common/kernels/rules/tensor_rules.h"
#include "common/kernels/rules/update_rule.h"
#include "common/wire/values_codec.h"
#include "server/storage/buffer_pool.h"

namespace slipstream {

/// The weights of a shard to which gradients are added where they lie (PolicyTraits::in_place).
/// Any number of threads add and copy at once. A block of weights belongs to one of them at a time,
/// so no addition to an element is lost, and whole vectors are added: one atomic operation for each
/// element took 7 to 11 times as long (64 MiB, one and two threads). Nothing orders the blocks: a
/// copy may hold some blocks of a gradient and not the others.
///
/// Thread-safe.
class InPlaceWeights {
 public:
  /// How one gradient is added.
  struct Terms {
    float weight = 1;
    float inverse_divisor = 1;
    StepSize step;
  };

  /// The weights and their copies are buffers of `pool`. REQUIRES: the rule adds (RuleRow::adds).
  InPlaceWeights(std::shared_ptr<const TensorRules> rules, BufferPool pool)
      : rules_(std::move(rules)), pool_(std::move(pool)), values_(pool_.Take()) {}

  /// The weights themselves. While others add, only their size may be read.
  Weights live() const { return values_; }

  /// REQUIRES: nothing is added or copied meanwhile.
  void Set(const FloatBuffer& initial);

  /// Adds a part of a gradient to the weights from position `begin` on.
  void Add(size_t begin, const ReceivedValues& gradient, const Terms& terms);

  /// Returns a copy with everything whose Add had returned before, and perhaps parts of more.
  Weights Copy();

 private:
  // Small enough to stay in a core's own cache while it is read and written.
  static constexpr size_t kBlockValues = size_t{16} << 10;
  static constexpr size_t kLocks = 64;

  /// The lock of the block with the value at `position`.
  Mutex& LockOf(size_t position) { return locks_[position / kBlockValues % kLocks]; }

  /// Calls pass(position, count) for the parts that lie in one block each, with its lock held.
  template <typename Pass>
  void ForEachBlock(size_t begin, size_t count, Pass pass);

  const std::shared_ptr<const TensorRules> rules_;
  BufferPool pool_;
  const std::shared_ptr<FloatBuffer> values_;  // Each block is guarded by its lock.
  std::array<Mutex, kLocks> locks_;
};

/// What is read as one version of weights that change in place. It is copied when somebody first
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

#endif  // SLIPSTREAM_SERVER_SERVICE_IN_PLACE_WEIGHTS_H_
