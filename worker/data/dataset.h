#ifndef SLIPSTREAM_WORKER_DATA_DATASET_H_
#define SLIPSTREAM_WORKER_DATA_DATASET_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "common/model/net_shapes.h"
#include "worker/data/example_values.h"

namespace slipstream {

/// One split (training or test) of a data set: examples, and the answer that a model should give
/// for each.
///
/// Thread-safe: const after construction.
struct Dataset {
  ExampleShape shape;

  /// The number of outputs that a model needs: the number of classes, or of values of one target.
  uint32_t outputs = 0;

  /// [count, channels, height, width], row-major.
  ExampleValues examples;

  /// The answers. One of the two is empty; the other holds a class below `outputs` for each
  /// example, or [count, outputs] real values.
  std::vector<uint32_t> labels;
  std::vector<float> targets;

  bool is_labelled() const { return targets.empty(); }
  size_t count() const { return is_labelled() ? labels.size() : targets.size() / outputs; }

  /// Empty if the examples are labelled.
  std::span<const float> target(size_t index) const {
    if (is_labelled()) return {};
    return std::span(targets).subspan(index * outputs, outputs);
  }

  /// Returns a hash (XXH64) of shape, labels, targets and values. The coordinator compares it, so
  /// that two workers with different files do not train as if they had the same data set.
  uint64_t Fingerprint() const;

  /// The same, but returns nothing if `goes_on`, which is called now and then, returns false.
  std::optional<uint64_t> Fingerprint(const std::function<bool()>& goes_on) const;
};

struct DataSplits {
  Dataset train;
  Dataset test;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_DATA_DATASET_H_
