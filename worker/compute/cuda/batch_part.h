#ifndef SLIPSTREAM_WORKER_COMPUTE_CUDA_BATCH_PART_H_
#define SLIPSTREAM_WORKER_COMPUTE_CUDA_BATCH_PART_H_

#include <cstddef>
#include <cstdint>

namespace slipstream::cuda {

/// The examples [begin, begin + count) of a mini-batch, which one of a plan's devices computes. In
/// the order of devices the parts make up the batch, as evenly as possible. If a batch has fewer
/// examples than there are devices, some devices have none.
struct BatchPart {
  uint32_t begin = 0;
  uint32_t count = 0;

  static BatchPart Of(uint32_t examples, size_t device, size_t devices) {
    const auto begin_of = [&](size_t i) {
      return static_cast<uint32_t>(uint64_t{examples} * i / devices);
    };
    return {begin_of(device), begin_of(device + 1) - begin_of(device)};
  }

  /// The number of examples of the largest part.
  static uint32_t Largest(uint32_t examples, size_t devices) {
    return static_cast<uint32_t>((uint64_t{examples} + devices - 1) / devices);
  }
};

}  // namespace slipstream::cuda

#endif  // SLIPSTREAM_WORKER_COMPUTE_CUDA_BATCH_PART_H_
