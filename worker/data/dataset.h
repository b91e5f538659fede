#ifndef SLIPSTREAM_WORKER_DATA_DATASET_H_
#define SLIPSTREAM_WORKER_DATA_DATASET_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "common/model/net_shapes.h"
#include "common/run/run_spec.h"

namespace slipstream {

/// Labelled examples in memory as fp32, normalised; one split (training or test) of a data set.
///
/// Thread-safe: const after construction.
struct Dataset {
  ExampleShape shape;
  uint32_t classes = 0;

  /// [count, channels, height, width], row-major.
  std::vector<float> examples;
  std::vector<uint8_t> labels;

  size_t count() const { return labels.size(); }
  std::span<const float> example(size_t index) const {
    return std::span(examples).subspan(index * shape.elements(), shape.elements());
  }

  /// Equal for equal contents (XXH64 of shape, labels and values); the coordinator compares it, so
  /// that two workers with different files do not train on as if they had one data set.
  uint64_t Fingerprint() const;
};

struct DataSplits {
  Dataset train;
  Dataset test;
};

/// Loads or generates what `spec` names. `seed` is the run's (of the generated set only). Fails
/// with NOT_FOUND or DATA_LOSS naming the path and what is wrong with the file: missing, truncated,
/// wrong magic number, counts that differ between images and labels, labels out of range, empty.
absl::StatusOr<DataSplits> LoadData(const DataSpec& spec, uint64_t seed);

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_DATA_DATASET_H_
