#include "worker/compute/cuda/batch_upload.h"

#include <algorithm>
#include <cstring>

#include "worker/compute/cuda/batch_part.h"
#include "worker/compute/cuda/cuda_status.h"
#include "worker/compute/cuda/pass_block.h"

namespace slipstream::cuda {

absl::StatusOr<std::unique_ptr<BatchUpload>> BatchUpload::Allocate(
    const std::vector<PlanMember>& members, const NetSizes& net, const BatchBlock& block,
    const BatchBlock& part_block, bool trains) {
  std::unique_ptr<BatchUpload> upload(new BatchUpload(members, net, block, part_block));
  PS_RETURN_IF_ERROR(
      Keep(upload->staged_, PinnedArray<std::byte>::Allocate(block.end, "a batch")));
  if (trains) {
    PS_RETURN_IF_ERROR(
        Keep(upload->coming_, ComingBatches::Allocate(members, net, block, part_block)));
  }
  return upload;
}

std::optional<BatchSpace> BatchUpload::New(uint32_t count) {
  if (coming_ == nullptr) return std::nullopt;
  return coming_->New(count);
}

void BatchUpload::Offer() {
  // One that could not be sent up is not there, and goes up with its step, which says what is wrong
  // with the device.
  (void)coming_->Offer();
}

absl::Status BatchUpload::Bring(const Batch& batch, uint32_t pass) {
  const PassInputs inputs = {.batch_index = batch.index, .pass = pass};
  std::memcpy(staged_.data(), &inputs, sizeof(inputs));
  const auto count = static_cast<uint32_t>(batch.examples.size() / net_.inputs);
  const bool is_there = coming_ != nullptr && coming_->Has(batch);
  if (!is_there) Stage(batch, count);
  for (size_t i = 0; i < members_.size(); ++i) {
    const PlanMember& member = members_[i];
    const cudaStream_t compute = member.context->compute();
    std::byte* const to = member.memory.batch.data();
    const BatchPart part = BatchPart::Of(count, i, members_.size());
    const bool is_whole = !is_there && part_block_ == block_;  // Then it goes up with the inputs.
    const size_t bytes = is_whole ? block_.BytesOf(count) : sizeof(inputs);
    PS_RETURN_IF_ERROR(member.context->Enter());
    PS_RETURN_IF_CUDA_ERROR(
        cudaMemcpyAsync(to, staged_.data(), bytes, cudaMemcpyHostToDevice, compute));
    if (is_whole) continue;
    PS_RETURN_IF_ERROR(is_there ? coming_->Bring(batch, i)
                                : CopyPart(part, {block_, staged_.data()}, {part_block_, to},
                                           cudaMemcpyHostToDevice, compute));
  }
  return absl::OkStatus();
}

void BatchUpload::Stage(const Batch& batch, uint32_t count) {
  const BatchSpace space = block_.SpaceAt(staged_.data(), count, net_);
  std::ranges::copy(batch.examples, space.examples.begin());
  std::ranges::copy(batch.labels.first(space.labels.size()), space.labels.begin());
  std::ranges::copy(batch.targets.first(space.targets.size()), space.targets.begin());
}

}  // namespace slipstream::cuda
