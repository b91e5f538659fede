#ifndef SLIPSTREAM_WORKER_DATA_SYNTHETIC_H_
#define SLIPSTREAM_WORKER_DATA_SYNTHETIC_H_

#include <cstdint>

#include "worker/data/raw_examples.h"

namespace slipstream {

/// The built-in set: 28×28 grey images of the ten digits, drawn as strokes that are turned,
/// sheared, bent and shifted at random, in varying thickness and contrast, with stray lines and
/// noise.
///
/// Example i of a split shows digit i mod 10 and depends on (seed, split, i) alone: more examples
/// keep the ones before them, and every machine makes the same bytes.
RawSplits GenerateSynthetic(uint64_t seed, uint32_t train_examples, uint32_t test_examples);

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_DATA_SYNTHETIC_H_
