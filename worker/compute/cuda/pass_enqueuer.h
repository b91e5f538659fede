#ifndef SLIPSTREAM_WORKER_COMPUTE_CUDA_PASS_ENQUEUER_H_
#define SLIPSTREAM_WORKER_COMPUTE_CUDA_PASS_ENQUEUER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "common/layout/tensor_layout.h"
#include "worker/compute/batch_check.h"
#include "worker/compute/cuda/arena_map.h"
#include "worker/compute/cuda/batch_block.h"
#include "worker/compute/cuda/cuda_node.h"
#include "worker/compute/cuda/plan_member.h"
#include "worker/compute/cuda/plan_memory.h"

namespace slipstream::cuda {

/// The parts of a plan that its passes use. They are borrowed, and must outlive the graphs.
struct PassParts {
  const NetSizes& net;
  const ArenaMap& map;
  const BatchBlock& block;  // Layout of a device's part.
  const HostMemory& host;
  const std::vector<PlanMember>& members;

  /// Whether gradients stay on the devices. If not, there is one device, and it sends them to the
  /// host.
  bool keeps_gradients = false;
};

/// Enqueues the parts of one pass on all devices of a plan; each device computes its part of the
/// batch.
///
/// A device raises flag 0 when its loss and totals are written. It raises flag i + 1 when the
/// gradients of the i-th range are on the host or, if they stay on the devices, computed.
class PassEnqueuer {
 public:
  PassEnqueuer(const PassParts& parts, uint32_t count, bool training);

  /// Enqueues the forward pass of the nodes [begin, end).
  absl::Status Forward(size_t begin, size_t end);

  absl::Status Loss();

  absl::Status Backward();

  /// Returns the ranges whose gradients were enqueued since the last call, in order.
  std::vector<ParameterRange> TakeRanges();

 private:
  /// The state of one device.
  struct Lane {
    const PlanMember* member = nullptr;
    CudaPass pass;
    float* output_gradient = nullptr;
    float* input_gradient = nullptr;
  };

  size_t nodes() const { return parts_.members.front().nodes.size(); }
  const PlacedNode& NodeAt(size_t i) const { return parts_.members.front().nodes[i]; }
  const float* InputOf(const Lane& lane, size_t node) const;
  size_t FirstWithParameters() const;
  absl::Status LossOfExamples(const Lane& lane) const;

  /// Enqueues the backward pass of one node. Its gradients are then ready for the device's download
  /// stream.
  absl::Status Backward(Lane& lane, size_t node, bool wants_input_gradient);
  absl::Status ZeroGradients(const Lane& lane, ParameterRange range) const;

  /// Enqueues on the download streams what follows once all devices' gradients of the next range
  /// are enqueued.
  absl::Status EndRange(ParameterRange range);

  const PassParts parts_;
  const uint32_t count_;  // Examples of all devices.
  std::vector<Lane> lanes_;
  std::vector<ParameterRange> ranges_;
};

}  // namespace slipstream::cuda

#endif  // SLIPSTREAM_WORKER_COMPUTE_CUDA_PASS_ENQUEUER_H_
