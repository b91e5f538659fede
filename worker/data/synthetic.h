#ifndef SLIPSTREAM_WORKER_DATA_SYNTHETIC_H_
#define SLIPSTREAM_WORKER_DATA_SYNTHETIC_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "common/model/net_shapes.h"
#include "worker/data/file_bytes.h"
#include "worker/data/raw_examples.h"

namespace slipstream {

/// Generates the built-in set: images of the ten digits, drawn as strokes that are turned, sheared,
/// bent and shifted at random, in varying thickness and contrast, with stray lines and noise. The
/// digits are drawn 28 × 28 and stretched to `shape`; each channel has its own background and
/// noise.
///
/// Example i of a split shows digit i mod 10 and depends only on (shape, seed, split, i). So a
/// larger set contains the examples of a smaller one, and every machine makes the same bytes.
///
/// Fails with CANCELLED if `progress`, which is given kSyntheticName as path, asked to stop. Fails
/// at once with RESOURCE_EXHAUSTED if memory is short for the set and for the floats made of it.
absl::StatusOr<RawSplits> GenerateSynthetic(const ExampleShape& shape, uint64_t seed,
                                            uint32_t train_examples, uint32_t test_examples,
                                            const ReadProgress& progress = {});

inline constexpr char kSyntheticName[] = "synthetic data";

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_DATA_SYNTHETIC_H_
