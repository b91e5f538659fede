#ifndef SLIPSTREAM_WORKER_DATA_DATASET_H_
#define SLIPSTREAM_WORKER_DATA_DATASET_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "common/model/net_shapes.h"

namespace slipstream {

/// Examples in memory as fp32 and what a model shall make of them; one split (training or test) of
/// a data set.
///
/// Thread-safe: const after construction.
struct Dataset {
  ExampleShape shape;

  /// What a model needs at its end: as many classes, or values of one target.
  uint32_t outputs = 0;

  /// [count, channels, height, width], row-major.
  std::vector<float> examples;

  /// One of the two is there, the other is empty: a class below `outputs` for each example, or
  /// [count, outputs] of real values.
  std::vector<uint32_t> labels;
  std::vector<float> targets;

  bool is_labelled() const { return targets.empty(); }
  size_t count() const { return is_labelled() ? labels.size() : targets.size() / outputs; }
  std::span<const float> example(size_t index) const {
    return std::span(examples).subspan(index * shape.elements(), shape.elements());
  }

  /// Empty if the examples are labelled.
  std::span<const float> target(size_t index) const {
    if (is_labelled()) return {};
    return std::span(targets).subspan(index * outputs, outputs);
  }

  /// Equal for equal contents (XXH64 of shape, labels, targets and values); the coordinator
  /// compares it, so that two workers with different files do not train on as if they had one data
  /// set.
  uint64_t Fingerprint() const;

  /// The same; nothing if `goes_on`, asked now and then, says no.
  std::optional<uint64_t> Fingerprint(const std::function<bool()>& goes_on) const;
};

struct DataSplits {
  Dataset train;
  Dataset test;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_DATA_DATASET_H_
