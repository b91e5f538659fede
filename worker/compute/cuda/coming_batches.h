#ifndef SLIPSTREAM_WORKER_COMPUTE_CUDA_COMING_BATCHES_H_
#define SLIPSTREAM_WORKER_COMPUTE_CUDA_COMING_BATCHES_H_

#include <cuda_runtime.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/compute/batch_check.h"
#include "worker/compute/cuda/device_context.h"
#include "worker/compute/cuda/device_memory.h"
#include "worker/compute/cuda/plan_memory.h"
#include "worker/compute/plan.h"

namespace slipstream::cuda {

/// Batches that go up before their step begins: two places, each pinned on the host and again on
/// the device, which take turns. A step's pass has one place of its own, to which its batch is
/// copied within the device, because graphs hold addresses.
///
/// New and Offer are one thread's, the others the plan's owner's; whoever hands a batch from one to
/// the other orders them. REQUIRES: when New is called, no step is under way with the batch of two
/// calls ago.
class ComingBatches {
 public:
  static absl::StatusOr<std::unique_ptr<ComingBatches>> Allocate(const DeviceContext& context,
                                                                 const NetSizes& net,
                                                                 const BatchBlock& block);
  ~ComingBatches();
  ComingBatches(const ComingBatches&) = delete;
  ComingBatches& operator=(const ComingBatches&) = delete;

  /// One that was offered there and not taken may still be on its way: it is nobody's by now.
  BatchSpace New(uint32_t count);

  /// The space of the last New is filled: sends it up.
  absl::Status Offer();

  /// Whether the batch is one that was offered, and is there still.
  bool Has(const Batch& batch) const { return Find(batch) != nullptr; }

  /// Enqueues on the compute stream that its answers and examples come to where passes look for
  /// them. REQUIRES: Has(batch).
  absl::Status Bring(const Batch& batch, std::byte* to) const;

 private:
  struct Place {
    PinnedArray<std::byte> host;
    DeviceArray<std::byte> device;
    cudaEvent_t is_up = nullptr;
    uint32_t count = 0;
    bool is_offered = false;
  };

  ComingBatches(const DeviceContext& context, const NetSizes& net, const BatchBlock& block)
      : context_(context), net_(net), block_(block) {}

  absl::Status AllocatePlaces();
  const Place* Find(const Batch& batch) const;

  const DeviceContext& context_;
  const NetSizes net_;
  const BatchBlock block_;

  cudaStream_t stream_ = nullptr;
  std::array<Place, 2> places_;
  size_t newest_ = 0;  // Of places_.
};

}  // namespace slipstream::cuda

#endif  // SLIPSTREAM_WORKER_COMPUTE_CUDA_COMING_BATCHES_H_
