#include "worker/compute/cuda/batch_upload.h"

#include <algorithm>
#include <cstring>

#include "common/model/model_spec.h"
#include "worker/compute/cuda/cuda_status.h"
#include "worker/compute/cuda/gather_kernels.h"
#include "worker/compute/cuda/pass_block.h"

namespace slipstream::cuda {

absl::StatusOr<std::unique_ptr<BatchUpload>> BatchUpload::Allocate(
    const std::vector<PlanMember>& members, const NetSizes& net, const BatchBlock& block,
    const BatchBlock& part_block, bool trains) {
  std::unique_ptr<BatchUpload> upload(new BatchUpload(members, net, block, part_block));
  PS_RETURN_IF_ERROR(Keep(upload->staged_, PinnedArray<std::byte>::Allocate(block.end, "a batch")));
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
  // A batch that could not be sent is not found later. It is sent with its step, which then reports
  // the device's failure.
  (void)coming_->Offer();
}

void BatchUpload::DropExamples() {
  kept_ = nullptr;
  kept_count_ = 0;
}

bool BatchUpload::KeepExamples(const ExampleTable& table, KeptExamples& shared) {
  ExampleTable needed = table;
  if (net_.loss == ModelSpec::Loss::kCrossEntropy) {
    needed.targets = {};
  } else {
    needed.labels = {};
  }
  kept_ = shared.CopiesOf(needed, members_);
  if (kept_ == nullptr) return false;
  kept_count_ = table.values / net_.inputs;
  coming_.reset();  // No batch needs to be sent before its step any more.
  return true;
}

absl::Status BatchUpload::Bring(const Batch& batch, uint32_t pass) {
  const PassInputs inputs = {.batch_index = batch.index, .pass = pass};
  std::memcpy(staged_.data(), &inputs, sizeof(inputs));
  if (!batch.rows.empty()) return Gather(batch);
  return BringValues(batch, static_cast<uint32_t>(batch.examples.size() / net_.inputs));
}

absl::Status BatchUpload::BringValues(const Batch& batch, uint32_t count) const {
  const bool is_there = coming_ != nullptr && coming_->Has(batch);
  if (!is_there) Stage(batch, count);
  for (size_t i = 0; i < members_.size(); ++i) {
    const PlanMember& member = members_[i];
    const cudaStream_t compute = member.context->compute();
    std::byte* const to = member.memory.batch.data();
    const BatchPart part = BatchPart::Of(count, i, members_.size());
    // Then one copy brings it with the inputs.
    const bool is_whole = !is_there && part_block_ == block_;
    const size_t bytes = is_whole ? block_.BytesOf(count) : sizeof(PassInputs);
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

void BatchUpload::Stage(const Batch& batch, uint32_t count) const {
  const BatchSpace space = block_.SpaceAt(staged_.data(), count, net_);
  std::ranges::copy(batch.examples, space.examples.begin());
  std::ranges::copy(batch.labels.first(space.labels.size()), space.labels.begin());
  std::ranges::copy(batch.targets.first(space.targets.size()), space.targets.begin());
}

absl::Status BatchUpload::Gather(const Batch& batch) const {
  std::memcpy(staged_.data() + block_.rows, batch.rows.data(), batch.rows.size_bytes());
  const auto count = static_cast<uint32_t>(batch.rows.size());
  for (size_t i = 0; i < members_.size(); ++i) {
    PS_RETURN_IF_ERROR(GatherPart(BatchPart::Of(count, i, members_.size()), i));
  }
  return absl::OkStatus();
}

absl::Status BatchUpload::GatherPart(const BatchPart& part, size_t member) const {
  const KeptExamples::Copy& kept = (*kept_)[member];
  const DeviceContext& context = *members_[member].context;
  std::byte* const to = members_[member].memory.batch.data();
  const auto copy = [&](size_t begin, size_t from, size_t bytes) {
    return PS_CUDA_STATUS(cudaMemcpyAsync(to + begin, staged_.data() + from, bytes,
                                          cudaMemcpyHostToDevice, context.compute()));
  };
  const size_t bytes_of_rows = part.count * sizeof(uint32_t);
  PS_RETURN_IF_ERROR(context.Enter());
  if (part.begin == 0) {  // One copy, including the gap in between.
    PS_RETURN_IF_ERROR(copy(0, 0, block_.rows + bytes_of_rows));
  } else {
    PS_RETURN_IF_ERROR(copy(0, 0, sizeof(PassInputs)));
    PS_RETURN_IF_ERROR(
        copy(part_block_.rows, block_.rows + part.begin * sizeof(uint32_t), bytes_of_rows));
  }
  if (part.count == 0) return absl::OkStatus();
  const auto gathered = [&](const DeviceArray<uint32_t>& table, size_t offset, size_t row_bytes) {
    return GatheredTable{table.data(), reinterpret_cast<uint32_t*>(to + offset),
                         static_cast<uint32_t>(row_bytes / sizeof(uint32_t))};
  };
  const BatchBlock& block = part_block_;
  return GatherRows(context.compute(), reinterpret_cast<const uint32_t*>(to + block.rows),
                    part.count, gathered(kept.examples, block.examples, block.example_bytes),
                    gathered(kept.answers, block.answers, block.answer_bytes));
}

}  // namespace slipstream::cuda
