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

/// Batches that go up before their step begins: two places, each pinned on the host and again on
/// the devices, which take turns. A step's pass has one place of its own, to which its batch is
/// copied within the device, because graphs hold addresses.
///
/// New and Offer are one thread's, the others the plan's owner's; whoever hands a batch from one to
/// the other orders them. REQUIRES: when New is called, no step is under way with the batch of two
/// calls ago.
class ComingBatches {
 public:
  /// Whole batches lie as `block` says, the devices' parts as `part_block`. `members` must outlive
  /// it.
  static absl::StatusOr<std::unique_ptr<ComingBatches>> Allocate(
      const std::vector<PlanMember>& members, const NetSizes& net, const BatchBlock& block,
      const BatchBlock& part_block);
  ~ComingBatches();
  ComingBatches(const ComingBatches&) = delete;
  ComingBatches& operator=(const ComingBatches&) = delete;

  /// One that was offered there and not taken may still be on its way: it is nobody's by now.
  BatchSpace New(uint32_t count);

  /// The space of the last New is filled: sends each device its part.
  absl::Status Offer();

  /// Whether the batch is one that was offered, and is there still.
  bool Has(const Batch& batch) const { return Find(batch) != nullptr; }

  /// Enqueues on the compute stream of a member, which is the calling thread's, that its part comes
  /// to where passes look for it. REQUIRES: Has(batch).
  absl::Status Bring(const Batch& batch, size_t member) const;

 private:
  /// On one device.
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

  std::vector<cudaStream_t> streams_;  // Of each device.
  std::array<Place, 2> places_;
  size_t newest_ = 0;  // Of places_.
};

}  // namespace slipstream::cuda

#endif  // SLIPSTREAM_WORKER_COMPUTE_CUDA_COMING_BATCHES_H_
