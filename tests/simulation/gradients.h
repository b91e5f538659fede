#ifndef SLIPSTREAM_TESTS_SIMULATION_GRADIENTS_H_
#define SLIPSTREAM_TESTS_SIMULATION_GRADIENTS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "common/layout/shard_map.h"
#include "common/layout/tensor_layout.h"
#include "common/protocol/batch_ranges.h"
#include "tests/simulation/scenario.h"

namespace slipstream {

/// Calls visit(batch) for each mini-batch of the ranges, in order.
template <typename Visit>
void ForEachBatch(const BatchRanges& ranges, Visit visit) {
  for (const BatchRange& range : ranges) {
    for (uint64_t i = 0; i < range.count; ++i) visit(range.first + i);
  }
}

/// The model and its gradients. Each shard's range has `kSlots` counting positions and then
/// `kDense` ordinary ones. A gradient is 1 at a counting position of its own, so that the weights
/// show how often, and with which factor, each gradient entered them. Its dense values depend on
/// the weights from which it was computed, so that a wrong version or order shows in the last bit.
/// They are less than 1, so that a codec that scales by the largest value leaves the counting
/// positions exact.
///
/// Not thread-safe: one owner.
class Gradients {
 public:
  static constexpr uint32_t kSlots = 480;
  static constexpr uint32_t kDense = 16;
  static constexpr uint32_t kShardValues = kSlots + kDense;

  struct Gradient {
    uint32_t slot = 0;
    BatchRanges batches;
    uint32_t examples = 0;
    std::vector<float> values;  // Values of the whole model.
  };

  explicit Gradients(const Scenario& scenario);

  const TensorLayout& layout() const { return layout_; }
  std::vector<float> InitialWeights() const;

  /// Returns a worker's push for these mini-batches. The first push of a mini-batch gets the slot
  /// numbered like its first mini-batch, so that runs of the same work can be compared. A push that
  /// does the work again gets a new slot.
  Gradient Compute(const BatchRanges& batches, std::span<const float> weights);

  /// Computes the push for mini-batches at one shard's dense positions from the weights there. It
  /// uses the formulas, not the code that workers run. Both spans hold the whole shard.
  static void ComputeDense(const Scenario& scenario, const BatchRanges& batches, uint32_t shard,
                           std::span<const float> weights, std::span<float> gradient);

  /// Frees the slot of a gradient that every shard has refused.
  void Forget(const Gradient& gradient) { is_taken_[gradient.slot] = false; }

 private:
  const Scenario& scenario_;
  TensorLayout layout_;
  std::vector<bool> is_taken_;  // By slot.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_SIMULATION_GRADIENTS_H_
