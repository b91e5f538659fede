#ifndef SLIPSTREAM_WORKER_COMPUTE_ACTIVATION_H_
#define SLIPSTREAM_WORKER_COMPUTE_ACTIVATION_H_

namespace slipstream {

/// What a node applies to its outputs. Each is undone in backward from its output alone.
enum class Activation { kNone, kRelu, kTanh };

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_COMPUTE_ACTIVATION_H_
