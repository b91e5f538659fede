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

/// Brings batches to the devices of a plan: with their step, through pinned memory; before their
/// step; or from examples that the devices keep already.
///
/// Not thread-safe: called by the plan's owner, except New and Offer (see ComingBatches).
class BatchUpload {
 public:
  /// Whole batches have the layout `block`, and the devices' parts the layout `part_block`. Only a
  /// plan that trains takes batches before their step. `members` must outlive this object.
  static absl::StatusOr<std::unique_ptr<BatchUpload>> Allocate(
      const std::vector<PlanMember>& members, const NetSizes& net, const BatchBlock& block,
      const BatchBlock& part_block, bool trains);

  /// See Plan::KeepExamples; CheckTable must accept the table. `shared` has the copies.
  bool KeepExamples(const ExampleTable& table, KeptExamples& shared);

  void DropExamples();

  /// The number of examples that are kept.
  size_t kept() const { return kept_count_; }

  /// See Plan::NewBatch and Plan::OfferBatch.
  std::optional<BatchSpace> New(uint32_t count);
  void Offer();

  /// Enqueues on the compute streams copies of each device's part of the batch, and of the pass's
  /// inputs, to the place where passes read them. REQUIRES: CheckBatch accepts the batch, and the
  /// previous step is over.
  absl::Status Bring(const Batch& batch, uint32_t pass);

 private:
  BatchUpload(const std::vector<PlanMember>& members, const NetSizes& net, const BatchBlock& block,
              const BatchBlock& part_block)
      : members_(members), net_(net), block_(block), part_block_(part_block) {}

  /// These bring a batch that is given by value.
  absl::Status BringValues(const Batch& batch, uint32_t count) const;
  void Stage(const Batch& batch, uint32_t count) const;

  /// These bring a batch that is given by rows.
  absl::Status Gather(const Batch& batch) const;
  absl::Status GatherPart(const BatchPart& part, size_t member) const;

  const std::vector<PlanMember>& members_;
  const NetSizes net_;
  const BatchBlock block_;
  const BatchBlock part_block_;

  PinnedArray<std::byte> staged_;          // In the layout block_.
  std::unique_ptr<ComingBatches> coming_;  // Null if the plan only evaluates, or keeps examples.
  // Shared with other plans; null if none are kept.
  std::shared_ptr<const KeptExamples::Copies> kept_;
  size_t kept_count_ = 0;
};

}  // namespace slipstream::cuda

#endif  // SLIPSTREAM_WORKER_COMPUTE_CUDA_BATCH_UPLOAD_H_
