#include "worker/compute/cuda/coming_batches.h"

#include "worker/compute/cuda/cuda_status.h"

namespace slipstream::cuda {

absl::StatusOr<std::unique_ptr<ComingBatches>> ComingBatches::Allocate(const DeviceContext& context,
                                                                       const NetSizes& net,
                                                                       const BatchBlock& block) {
  std::unique_ptr<ComingBatches> batches(new ComingBatches(context, net, block));
  PS_RETURN_IF_ERROR(batches->AllocatePlaces());
  return batches;
}

absl::Status ComingBatches::AllocatePlaces() {
  PS_RETURN_IF_CUDA_ERROR(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  for (Place& place : places_) {
    PS_RETURN_IF_CUDA_ERROR(cudaEventCreateWithFlags(&place.is_up, cudaEventDisableTiming));
    PS_RETURN_IF_ERROR(
        Keep(place.host, PinnedArray<std::byte>::Allocate(block_.end, "a coming batch")));
    PS_RETURN_IF_ERROR(
        Keep(place.device, DeviceArray<std::byte>::Allocate(block_.end, "a coming batch")));
  }
  return absl::OkStatus();
}

ComingBatches::~ComingBatches() {
  // As the context's: nothing can be done about errors here.
  (void)context_.Enter();
  if (stream_ != nullptr) (void)cudaStreamSynchronize(stream_);
  for (const Place& place : places_) {
    if (place.is_up != nullptr) (void)cudaEventDestroy(place.is_up);
  }
  if (stream_ != nullptr) (void)cudaStreamDestroy(stream_);
}

BatchSpace ComingBatches::New(uint32_t count) {
  newest_ = 1 - newest_;
  Place& place = places_[newest_];
  place.is_offered = false;
  place.count = count;
  std::byte* const answers = place.host.data() + block_.answers;
  const bool has_labels = net_.loss == ModelSpec::Loss::kCrossEntropy;
  BatchSpace space;
  space.examples = {reinterpret_cast<float*>(place.host.data() + block_.examples),
                    count * net_.inputs};
  if (has_labels) space.labels = {reinterpret_cast<uint32_t*>(answers), count};
  if (!has_labels) {
    space.targets = {reinterpret_cast<float*>(answers), size_t{count} * net_.outputs};
  }
  return space;
}

absl::Status ComingBatches::Offer() {
  PS_RETURN_IF_ERROR(context_.Enter());
  Place& place = places_[newest_];
  PS_RETURN_IF_CUDA_ERROR(cudaMemcpyAsync(
      place.device.data() + block_.answers, place.host.data() + block_.answers,
      block_.BytesOf(place.count) - block_.answers, cudaMemcpyHostToDevice, stream_));
  PS_RETURN_IF_CUDA_ERROR(cudaEventRecord(place.is_up, stream_));
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

absl::Status ComingBatches::Bring(const Batch& batch, std::byte* to) const {
  const Place& place = *Find(batch);
  PS_RETURN_IF_CUDA_ERROR(cudaStreamWaitEvent(context_.compute(), place.is_up, 0));
  return PS_CUDA_STATUS(cudaMemcpyAsync(to + block_.answers, place.device.data() + block_.answers,
                                        block_.BytesOf(place.count) - block_.answers,
                                        cudaMemcpyDeviceToDevice, context_.compute()));
}

}  // namespace slipstream::cuda
