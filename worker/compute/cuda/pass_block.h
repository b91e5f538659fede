#ifndef SLIPSTREAM_WORKER_COMPUTE_CUDA_PASS_BLOCK_H_
#define SLIPSTREAM_WORKER_COMPUTE_CUDA_PASS_BLOCK_H_

#include <cstdint>

namespace slipstream::cuda {

/// The inputs and outputs of a pass through a net other than its values. Graphs are captured once
/// and launched for many passes, so kernels read from memory what differs between passes.

/// The inputs, in device memory; they are sent when the pass begins.
struct PassInputs {
  uint64_t batch_index = 0;

  /// The number of the pass, from 1 for each plan. A flag with this value was raised by this pass.
  uint32_t pass = 0;
};

/// The outputs, in pinned memory that the device writes. Valid once the first flag is raised.
struct PassOutputs {
  double loss_sum = 0;   // Sum over the examples.
  uint32_t correct = 0;  // If examples have a class.
};

}  // namespace slipstream::cuda

#endif  // SLIPSTREAM_WORKER_COMPUTE_CUDA_PASS_BLOCK_H_
