#ifndef SLIPSTREAM_WORKER_COMPUTE_CUDA_PASS_BLOCK_H_
#define SLIPSTREAM_WORKER_COMPUTE_CUDA_PASS_BLOCK_H_

#include <cstdint>

namespace slipstream::cuda {

/// What a pass through a net is told and tells besides values. Graphs are captured once and
/// launched for many passes, so kernels read from memory what differs between them.

/// In device memory; goes up when the pass begins.
struct PassInputs {
  uint64_t batch_index = 0;

  /// Numbers the plan's passes from 1; a flag that holds it was raised by this one.
  uint32_t pass = 0;
};

/// In pinned memory that the device writes to. Valid once the first flag is raised.
struct PassOutputs {
  double loss_sum = 0;   // Over the examples.
  uint32_t correct = 0;  // Of examples with a class.
};

}  // namespace slipstream::cuda

#endif  // SLIPSTREAM_WORKER_COMPUTE_CUDA_PASS_BLOCK_H_
