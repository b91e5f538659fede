#ifndef SLIPSTREAM_WORKER_COMPUTE_CUDA_COMING_BATCHES_H_
#define SLIPSTREAM_WORKER_COMPUTE_CUDA_COMING_BATCHES_H_

#include <cuda_runtime.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/compute/batch_check.h"
#include "worker/compute/cuda/batch_block.h"
#include "worker/compute/cuda/batch_part.h"
#include "worker/compute/cuda/device_memory.h"
#include "worker/compute/cuda/plan_member.h"
#include "worker/compute/plan.h"

namespace slipstream::cuda {

/// Batches that are sent to the devices before their step begins. There are two places that take
/// turns, each with pinned memory on the host and a copy on the devices. A step's pass has a place
/// of its own, to which its batch is copied within the device, because graphs contain addresses.
///
/// One thread calls New and Offer, and the plan's owner calls the other methods; the caller that
/// passes a batch from one to the other orders these calls. REQUIRES: when New is called, no step
/// is under way with the batch of two calls ago.
class ComingBatches {
 public:
  /// Whole batches have the layout `block`, and the devices' parts the layout `part_block`.
  /// `members` must outlive this object.
  static absl::StatusOr<std::unique_ptr<ComingBatches>> Allocate(
      const std::vector<PlanMember>& members, const NetSizes& net, const BatchBlock& block,
      const BatchBlock& part_block);
  ~ComingBatches();
  ComingBatches(const ComingBatches&) = delete;
  ComingBatches& operator=(const ComingBatches&) = delete;

  /// Returns the space for a batch of `count` examples. An earlier batch that was offered there and
  /// never taken may still be being copied; nobody uses it any more.
  BatchSpace New(uint32_t count);

  /// Sends each device its part of the batch in the space of the last New, which is filled.
  absl::Status Offer();

  /// True if the batch was offered and is still there.
  bool Has(const Batch& batch) const { return Find(batch) != nullptr; }

  /// Enqueues on the compute stream of a member, whose device is current, a copy of its part to the
  /// place where passes read it. REQUIRES: Has(batch).
  absl::Status Bring(const Batch& batch, size_t member) const;

 private:
  /// The copy on one device.
  struct Copied {
    DeviceArray<std::byte> batch;
    cudaEvent_t is_up = nullptr;
  };

  struct Place {
    PinnedArray<std::byte> host;
    std::vector<Copied> devices;
    uint32_t count = 0;
    bool is_offered = false;
  };

  ComingBatches(const std::vector<PlanMember>& members, const NetSizes& net,
                const BatchBlock& block, const BatchBlock& part_block)
      : members_(members),
        net_(net),
        block_(block),
        part_block_(part_block),
        streams_(members.size()) {
    for (Place& place : places_) place.devices.resize(members.size());
  }

  absl::Status AllocatePlaces();
  const Place* Find(const Batch& batch) const;
  BatchPart PartOf(const Place& place, size_t member) const {
    return BatchPart::Of(place.count, member, members_.size());
  }

  const std::vector<PlanMember>& members_;
  const NetSizes net_;
  const BatchBlock block_;
  const BatchBlock part_block_;

  std::vector<cudaStream_t> streams_;  // One per device.
  std::array<Place, 2> places_;
  size_t newest_ = 0;  // Index in places_.
};

}  // namespace slipstream::cuda

#endif  // SLIPSTREAM_WORKER_COMPUTE_CUDA_COMING_BATCHES_H_
