#ifndef SLIPSTREAM_WORKER_DATA_RAW_EXAMPLES_H_
#define SLIPSTREAM_WORKER_DATA_RAW_EXAMPLES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/model/net_shapes.h"
#include "worker/data/example_values.h"

namespace slipstream {

/// One split as a format's reader or the generator returns it: bytes that are not normalised yet.
///
/// Not thread-safe: a value.
struct RawExamples {
  ExampleShape shape;

  /// [count, channels, height, width], row-major.
  ByteRows pixels;

  /// The labels, each below 10: every format that uses this has ten classes.
  std::vector<uint8_t> labels;
};

struct RawSplits {
  RawExamples train;
  RawExamples test;
};

inline constexpr uint32_t kClasses = 10;

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_DATA_RAW_EXAMPLES_H_
