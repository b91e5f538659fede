#ifndef SLIPSTREAM_WORKER_COMPUTE_CUDA_BATCH_UPLOAD_H_
#define SLIPSTREAM_WORKER_COMPUTE_CUDA_BATCH_UPLOAD_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/compute/batch_check.h"
#include "worker/compute/cuda/batch_block.h"
#include "worker/compute/cuda/batch_part.h"
#include "worker/compute/cuda/coming_batches.h"
#include "worker/compute/cuda/device_memory.h"
#include "worker/compute/cuda/kept_examples.h"
#include "worker/compute/cuda/plan_member.h"
#include "worker/compute/plan.h"

namespace slipstream::cuda {

/// Batches on their way to the devices of a plan: with their step, through pinned memory; before
/// it; or from examples that lie on the devices already.
///
/// Not thread-safe: the plan's owner's, but for New and Offer, which are as ComingBatches says.
class BatchUpload {
 public:
  /// Whole batches lie as `block` says, the devices' parts as `part_block`; only a plan that trains
  /// takes batches before their step. `members` must outlive it.
  static absl::StatusOr<std::unique_ptr<BatchUpload>> Allocate(
      const std::vector<PlanMember>& members, const NetSizes& net, const BatchBlock& block,
      const BatchBlock& part_block, bool trains);

  /// As Plan::KeepExamples, of a table that CheckTable accepts; `shared` has the copies.
  bool KeepExamples(const ExampleTable& table, KeptExamples& shared);

  void DropExamples();

  /// Examples that are kept.
  size_t kept() const { return kept_count_; }

  /// As Plan::NewBatch and Plan::OfferBatch.
  std::optional<BatchSpace> New(uint32_t count);
  void Offer();

  /// Enqueues on the compute streams that each device's part of the batch, and what the pass is
  /// told, come to where passes look for them. REQUIRES: CheckBatch accepts the batch, and the step
  /// before is over.
  absl::Status Bring(const Batch& batch, uint32_t pass);

 private:
  BatchUpload(const std::vector<PlanMember>& members, const NetSizes& net, const BatchBlock& block,
              const BatchBlock& part_block)
      : members_(members), net_(net), block_(block), part_block_(part_block) {}

  /// Of a batch in values.
  absl::Status BringValues(const Batch& batch, uint32_t count) const;
  void Stage(const Batch& batch, uint32_t count) const;

  /// Of a batch in rows.
  absl::Status Gather(const Batch& batch) const;
  absl::Status GatherPart(const BatchPart& part, size_t member) const;

  const std::vector<PlanMember>& members_;
  const NetSizes net_;
  const BatchBlock block_;
  const BatchBlock part_block_;

  PinnedArray<std::byte> staged_;          // As block_ says.
  std::unique_ptr<ComingBatches> coming_;  // Null if the plan only evaluates, or keeps examples.
  std::shared_ptr<const KeptExamples::Copies> kept_;  // With other plans; null if none are kept.
  size_t kept_count_ = 0;
};

}  // namespace slipstream::cuda

#endif  // SLIPSTREAM_WORKER_COMPUTE_CUDA_BATCH_UPLOAD_H_
