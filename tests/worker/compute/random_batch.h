#ifndef SLIPSTREAM_TESTS_WORKER_COMPUTE_RANDOM_BATCH_H_
#define SLIPSTREAM_TESTS_WORKER_COMPUTE_RANDOM_BATCH_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/base/philox.h"
#include "worker/compute/plan.h"

namespace slipstream {

/// Examples of noise around a pattern that tells their class, so that a net can learn them.
class RandomBatch {
 public:
  RandomBatch(size_t count, size_t inputs, uint32_t classes, uint64_t seed)
      : examples_(count * inputs), labels_(count), index_(seed) {
    RandomStream random(seed, 0);
    for (size_t i = 0; i < count; ++i) {
      labels_[i] = static_cast<uint8_t>(random.Below(classes));
      RandomStream pattern(labels_[i], 1);
      for (size_t j = 0; j < inputs; ++j) {
        examples_[i * inputs + j] = random.Uniform(-1, 1) + pattern.Uniform(-1, 1);
      }
    }
  }

  Batch batch() const { return {examples_, labels_, index_}; }

  /// Its first examples.
  Batch first(size_t count) const {
    const size_t inputs = examples_.size() / labels_.size();
    return {std::span(examples_).first(count * inputs), std::span(labels_).first(count), index_};
  }

 private:
  std::vector<float> examples_;
  std::vector<uint8_t> labels_;
  uint64_t index_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_WORKER_COMPUTE_RANDOM_BATCH_H_
