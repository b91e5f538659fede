#include "worker/compute/cuda/weights_upload.h"

#include "worker/compute/cuda/cuda_status.h"

namespace slipstream::cuda {

absl::Status WeightsUpload::Enqueue(ParameterRange range) const {
  absl::Status status;
  for (const PlanMember& member : members_) {
    PS_RETURN_IF_ERROR(member.context->Enter());
    map_.ForEachPart(range, [&](size_t host, size_t device, size_t size) {
      status.Update(PS_CUDA_STATUS(
          cudaMemcpyAsync(member.memory.weights.data() + device, host_.weights.data() + host,
                          size * sizeof(float), cudaMemcpyHostToDevice, member.context->upload())));
    });
  }
  return status;
}

void WeightsUpload::Keep(const absl::Status& status) {
  if (status.ok()) return;
  MutexLock lock(mutex_);
  failure_.Update(status);
}

absl::Status WeightsUpload::Join() {
  {
    MutexLock lock(mutex_);
    PS_RETURN_IF_ERROR(failure_);
  }
  for (const PlanMember& member : members_) {
    const DeviceContext& context = *member.context;
    PS_RETURN_IF_ERROR(context.Enter());
    PS_RETURN_IF_ERROR(context.Order(context.upload(), context.compute()));
  }
  return absl::OkStatus();
}

}  // namespace slipstream::cuda
