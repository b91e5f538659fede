#ifndef SLIPSTREAM_TESTS_WORKER_COMPUTE_RANDOM_BATCH_H_
#define SLIPSTREAM_TESTS_WORKER_COMPUTE_RANDOM_BATCH_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/base/philox.h"
#include "common/model/model_spec.h"
#include "worker/compute/plan.h"

namespace slipstream {

/// Examples made of noise and a pattern that depends on their class, so that a net can learn them.
/// For nets without classes, it also has targets in [-1, 1), as many as there are classes.
class RandomBatch {
 public:
  RandomBatch(size_t count, size_t inputs, uint32_t classes, uint64_t seed)
      : examples_(count * inputs), labels_(count), targets_(count * classes), index_(seed) {
    RandomStream random(seed, 0);
    for (size_t i = 0; i < count; ++i) {
      labels_[i] = random.Below(classes);
      RandomStream pattern(labels_[i], 1);
      for (size_t j = 0; j < inputs; ++j) {
        examples_[i * inputs + j] = random.Uniform(-1, 1) + pattern.Uniform(-1, 1);
      }
    }
    RandomStream values(seed, 2);
    for (float& target : targets_) target = values.Uniform(-1, 1);
  }

  /// Copies the values of another batch of equal size. The addresses of this batch's values stay
  /// valid.
  void Assign(const RandomBatch& other) {
    std::ranges::copy(other.examples_, examples_.begin());
    std::ranges::copy(other.labels_, labels_.begin());
    std::ranges::copy(other.targets_, targets_.begin());
  }

  Batch batch() const { return {examples_, labels_, index_}; }

  /// Returns the batch for a net with this loss.
  Batch batch(ModelSpec::Loss loss) const {
    if (loss == ModelSpec::Loss::kCrossEntropy) return batch();
    return {examples_, {}, index_, targets_};
  }

  /// Returns the first `count` examples.
  Batch first(size_t count) const {
    const size_t inputs = examples_.size() / labels_.size();
    return {std::span(examples_).first(count * inputs), std::span(labels_).first(count), index_};
  }

 private:
  std::vector<float> examples_;
  std::vector<uint32_t> labels_;
  std::vector<float> targets_;
  uint64_t index_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_WORKER_COMPUTE_RANDOM_BATCH_H_
