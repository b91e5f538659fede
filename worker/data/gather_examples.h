#ifndef SLIPSTREAM_WORKER_DATA_GATHER_EXAMPLES_H_
#define SLIPSTREAM_WORKER_DATA_GATHER_EXAMPLES_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "worker/data/dataset.h"

namespace slipstream {

/// Where a mini-batch comes to lie: [count, …] of what a Dataset has of each example.
struct GatheredExamples {
  std::span<float> examples;
  std::span<uint32_t> labels;  // Empty if there are targets.
  std::span<float> targets;    // Empty if there are labels.
};

/// As many threads as gather so many bytes fastest: one for each MiB, as long as they leave half of
/// the processors to others, and at most four, which keep up with PCIe.
size_t GatherThreads(size_t bytes);

/// Copies the examples at `indices`, in their order, with so many threads, of which the calling one
/// is the first. REQUIRES: `to` holds as many; threads ≥ 1.
void GatherExamples(const Dataset& from, std::span<const uint32_t> indices,
                    const GatheredExamples& to, size_t threads);

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_DATA_GATHER_EXAMPLES_H_
