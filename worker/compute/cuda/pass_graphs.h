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

/// A pass of one batch size as graphs, over the batch that lies on the devices: forward, the loss;
/// in training also backward, and a single device's gradients come down while it goes on. Flags are
/// those of PassEnqueuer.
class PassGraphs {
 public:
  /// Of forward: a graph, and the weights that it is the first to read.
  struct Segment {
    ParameterRange reads;
    StreamGraph graph;
  };

  /// First computes such a pass once, over a batch of zeros, and waits for it: what libraries do at
  /// their first call of a kind, such as to load or to allocate, cannot always be captured. That
  /// writes what passes write on the devices, and nothing on the host but flags and totals.
  /// REQUIRES: no pass is under way.
  static absl::StatusOr<std::unique_ptr<PassGraphs>> Capture(const PassParts& parts, uint32_t count,
                                                             bool training);

  /// All of it, for when all weights are there.
  const StreamGraph& whole() const { return *whole_; }

  /// The same in parts, in order, for when weights are still arriving: forward, and then the rest,
  /// which reads weights and writes the host's gradients. Of training only.
  const std::vector<Segment>& forward() const { return forward_; }
  const StreamGraph& rest() const { return *rest_; }

  /// Of gradients, in the order in which they are computed; empty unless training.
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
