#include "worker/compute/cuda/coming_batches.h"

#include "worker/compute/cuda/cuda_status.h"

namespace slipstream::cuda {

absl::StatusOr<std::unique_ptr<ComingBatches>> ComingBatches::Allocate(
    const std::vector<PlanMember>& members, const NetSizes& net, const BatchBlock& block,
    const BatchBlock& part_block) {
  std::unique_ptr<ComingBatches> batches(new ComingBatches(members, net, block, part_block));
  PS_RETURN_IF_ERROR(batches->AllocatePlaces());
  return batches;
}

absl::Status ComingBatches::AllocatePlaces() {
  constexpr const char* kWhat = "a coming batch";
  for (size_t i = 0; i < members_.size(); ++i) {
    PS_RETURN_IF_ERROR(members_[i].context->Enter());
    PS_RETURN_IF_CUDA_ERROR(cudaStreamCreateWithFlags(&streams_[i], cudaStreamNonBlocking));
    for (Place& place : places_) {
      Copied& copied = place.devices[i];
      PS_RETURN_IF_CUDA_ERROR(cudaEventCreateWithFlags(&copied.is_up, cudaEventDisableTiming));
      PS_RETURN_IF_ERROR(
          Keep(copied.batch, DeviceArray<std::byte>::Allocate(part_block_.end, kWhat)));
    }
  }
  for (Place& place : places_) {
    PS_RETURN_IF_ERROR(Keep(place.host, PinnedArray<std::byte>::Allocate(block_.end, kWhat)));
  }
  return absl::OkStatus();
}

ComingBatches::~ComingBatches() {
  // Errors cannot be handled here, as in ~DeviceContext.
  for (size_t i = 0; i < members_.size(); ++i) {
    (void)members_[i].context->Enter();
    if (streams_[i] != nullptr) (void)cudaStreamSynchronize(streams_[i]);
    for (const Place& place : places_) {
      const cudaEvent_t is_up = place.devices[i].is_up;
      if (is_up != nullptr) (void)cudaEventDestroy(is_up);
    }
    if (streams_[i] != nullptr) (void)cudaStreamDestroy(streams_[i]);
  }
}

BatchSpace ComingBatches::New(uint32_t count) {
  newest_ = 1 - newest_;
  Place& place = places_[newest_];
  place.is_offered = false;
  place.count = count;
  return block_.SpaceAt(place.host.data(), count, net_);
}

absl::Status ComingBatches::Offer() {
  Place& place = places_[newest_];
  for (size_t i = 0; i < members_.size(); ++i) {
    const Copied& copied = place.devices[i];
    PS_RETURN_IF_ERROR(members_[i].context->Enter());
    PS_RETURN_IF_ERROR(CopyPart(PartOf(place, i), {block_, place.host.data()},
                                {part_block_, copied.batch.data()}, cudaMemcpyHostToDevice,
                                streams_[i]));
    PS_RETURN_IF_CUDA_ERROR(cudaEventRecord(copied.is_up, streams_[i]));
  }
  place.is_offered = true;
  return absl::OkStatus();
}

const ComingBatches::Place* ComingBatches::Find(const Batch& batch) const {
  for (const Place& place : places_) {
    const std::byte* const examples = place.host.data() + block_.examples;
    const bool is_here = reinterpret_cast<const std::byte*>(batch.examples.data()) == examples;
    if (is_here && place.is_offered) return &place;
  }
  return nullptr;
}

absl::Status ComingBatches::Bring(const Batch& batch, size_t member) const {
  const Place& place = *Find(batch);
  const Copied& copied = place.devices[member];
  const cudaStream_t compute = members_[member].context->compute();
  PS_RETURN_IF_CUDA_ERROR(cudaStreamWaitEvent(compute, copied.is_up, 0));
  const BatchPart on_device = {0, PartOf(place, member).count};
  return CopyPart(on_device, {part_block_, copied.batch.data()},
                  {part_block_, members_[member].memory.batch.data()}, cudaMemcpyDeviceToDevice,
                  compute);
}

}  // namespace slipstream::cuda
