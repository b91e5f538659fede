#include "worker/compute/cuda/group_gradients.h"

#include <atomic>
#include <string>
#include <utility>

#include "worker/compute/cuda/cuda_status.h"
#include "worker/compute/cuda/pass_block.h"
#include "worker/compute/cuda/vector_kernels.h"

namespace slipstream::cuda {
namespace {

constexpr int kRoot = 0;

}  // namespace

absl::StatusOr<std::unique_ptr<GroupGradients>> GroupGradients::New(
    const std::vector<PlanMember>& members, const std::vector<int>& devices, const ArenaMap& map,
    const HostMemory& host, Mutex& launching) {
  const absl::StatusOr<const Nccl*> nccl = Nccl::Load();
  if (!nccl.ok()) return nccl.status();
  std::unique_ptr<GroupGradients> group(new GroupGradients(**nccl, members, map, host, launching));
  PS_RETURN_IF_ERROR(
      Keep(group->flags_, PinnedArray<uint32_t>::Allocate(members.front().nodes.size(), "flags")));
  std::vector<ncclComm_t> communicators(devices.size());
  const absl::Status connected = PS_CUDA_STATUS(group->nccl_.CommInitAll(
      communicators.data(), static_cast<int>(devices.size()), devices.data()));
  if (!connected.ok()) {
    // Of the machine, most likely, and then the same again: too small a /dev/shm, an old driver.
    return absl::InvalidArgumentError(std::string(connected.message()) +
                                      "; or set compute.device to one GPU");
  }
  group->communicators_ = std::move(communicators);
  return group;
}

// Nothing can be done about errors here.

GroupGradients::~GroupGradients() {
  for (ncclComm_t communicator : communicators_) (void)nccl_.CommDestroy(communicator);
}

void GroupGradients::Fail() {
  for (ncclComm_t communicator : std::exchange(communicators_, {})) {
    (void)nccl_.CommAbort(communicator);
  }
}

absl::Status GroupGradients::Collect(size_t i, ParameterRange range) {
  if (communicators_.empty()) return absl::AbortedError("one of the worker's GPUs has failed");
  PS_RETURN_IF_ERROR(AddUp(range));
  const PlanMember& first = members_.front();
  PS_RETURN_IF_ERROR(first.context->Enter());
  PS_RETURN_IF_ERROR(first.Download(map_, range, host_));
  const auto* inputs = reinterpret_cast<const PassInputs*>(first.memory.batch.data());
  return Raise(first.context->download(), inputs, flags_.data() + i);
}

absl::Status GroupGradients::AddUp(ParameterRange range) {
  const MutexLock lock(launching_);
  // One group: a thread that waited for one device's part of a sum would never come to the next's.
  PS_RETURN_IF_CUDA_ERROR(nccl_.GroupStart());
  absl::Status enqueued;
  map_.ForEachPart(range, [&](size_t /*host*/, size_t device, size_t size) {
    enqueued.Update(Reduce(device, size));
  });
  const absl::Status ended = PS_CUDA_STATUS(nccl_.GroupEnd());
  return enqueued.ok() ? ended : enqueued;
}

absl::Status GroupGradients::Reduce(size_t begin, size_t size) {
  for (size_t i = 0; i < members_.size(); ++i) {
    float* const values = members_[i].memory.gradients.data() + begin;
    PS_RETURN_IF_CUDA_ERROR(nccl_.Reduce(values, values, size, ncclFloat32, ncclSum, kRoot,
                                         communicators_[i], members_[i].context->download()));
  }
  return absl::OkStatus();
}

bool GroupGradients::HasCome(size_t i, uint32_t pass) const {
  return std::atomic_ref<uint32_t>(flags_.data()[i]).load(std::memory_order_acquire) == pass;
}

absl::Status GroupGradients::Check() const {
  for (ncclComm_t communicator : communicators_) {
    ncclResult_t error = ncclSuccess;
    PS_RETURN_IF_CUDA_ERROR(nccl_.CommGetAsyncError(communicator, &error));
    PS_RETURN_IF_ERROR(ToStatus(error, {__FILE__, __LINE__, "a sum over devices"}));
  }
  return absl::OkStatus();
}

}  // namespace slipstream::cuda
