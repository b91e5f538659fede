#ifndef SLIPSTREAM_WORKER_COMPUTE_CUDA_PASS_GRAPHS_H_
#define SLIPSTREAM_WORKER_COMPUTE_CUDA_PASS_GRAPHS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/layout/tensor_layout.h"
#include "worker/compute/cuda/pass_enqueuer.h"
#include "worker/compute/cuda/stream_graph.h"

namespace slipstream::cuda {

/// A pass of one batch size as graphs, over the batch on the devices: the forward pass and the
/// loss. In training it includes the backward pass, during which a single device sends its
/// gradients to the host. Flags are those of PassEnqueuer.
class PassGraphs {
 public:
  /// A part of the forward pass, and the weights that it is the first to read.
  struct Segment {
    ParameterRange reads;
    StreamGraph graph;
  };

  /// Computes such a pass once, over a batch of zeros, waits for it, and then captures it. The
  /// first computation is needed because the first call of a library function may load code or
  /// allocate, which cannot always be captured. It overwrites the values that passes write on the
  /// devices, but on the host only flags and totals. REQUIRES: no pass is under way.
  static absl::StatusOr<std::unique_ptr<PassGraphs>> Capture(const PassParts& parts, uint32_t count,
                                                             bool training);

  /// The whole pass, for use when all weights are present.
  const StreamGraph& whole() const { return *whole_; }

  /// The same pass in parts, in order, for use while weights are still arriving: the forward pass,
  /// and then the rest, which reads weights and writes the host's gradients. Only in training.
  const std::vector<Segment>& forward() const { return forward_; }
  const StreamGraph& rest() const { return *rest_; }

  /// The ranges of gradients, in the order in which they are computed; empty unless training.
  const std::vector<ParameterRange>& ranges() const { return ranges_; }

 private:
  PassGraphs() = default;

  std::optional<StreamGraph> whole_;
  std::vector<Segment> forward_;
  std::optional<StreamGraph> rest_;
  std::vector<ParameterRange> ranges_;
};

}  // namespace slipstream::cuda

#endif  // SLIPSTREAM_WORKER_COMPUTE_CUDA_PASS_GRAPHS_H_
