#include "worker/compute/cuda/plan_member.h"

#include "worker/compute/cuda/cuda_status.h"

namespace slipstream::cuda {

absl::StatusOr<PlanMember> PlanMember::New(int device, const NetLayers& layers, const ArenaMap& map,
                                           const BatchBlock& block, const PlanOptions& options) {
  PlanMember member;
  PS_RETURN_IF_ERROR(Keep(member.context, DeviceContext::Open(device)));
  PS_RETURN_IF_ERROR(Keep(member.nodes, MakeNodes(*member.context, layers, map, options)));
  PS_RETURN_IF_ERROR(Keep(member.memory, PlanMemory::Allocate(block, map, member.nodes, options)));
  return member;
}

absl::Status PlanMember::Download(const ArenaMap& map, ParameterRange range,
                                  const HostMemory& host) const {
  absl::Status status;
  map.ForEachPart(range, [&](size_t at, size_t on_device, size_t size) {
    status.Update(PS_CUDA_STATUS(
        cudaMemcpyAsync(host.gradients.data() + at, memory.gradients.data() + on_device,
                        size * sizeof(float), cudaMemcpyDeviceToHost, context->download())));
  });
  return status;
}

absl::Status AwaitAll(const std::vector<PlanMember>& members,
                      cudaStream_t (DeviceContext::*stream)() const) {
  for (const PlanMember& member : members) {
    PS_RETURN_IF_ERROR(member.context->Enter());
    PS_RETURN_IF_ERROR(DeviceContext::Await((member.context.get()->*stream)()));
  }
  return absl::OkStatus();
}

}  // namespace slipstream::cuda
