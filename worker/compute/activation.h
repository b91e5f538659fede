#ifndef SLIPSTREAM_WORKER_COMPUTE_ACTIVATION_H_
#define SLIPSTREAM_WORKER_COMPUTE_ACTIVATION_H_

namespace slipstream {

/// The function that a node applies to its outputs. The backward pass computes its derivative from
/// the output alone.
enum class Activation { kNone, kRelu, kTanh };

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_COMPUTE_ACTIVATION_H_
