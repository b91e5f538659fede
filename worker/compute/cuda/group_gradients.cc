#include "worker/compute/cuda/group_gradients.h"

#include <atomic>
#include <utility>

#include "absl/strings/str_cat.h"
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
  PS_RETURN_IF_ERROR(group->Start(devices));
  return group;
}

absl::Status GroupGradients::Start(const std::vector<int>& devices) {
  PS_RETURN_IF_ERROR(
      Keep(flags_, PinnedArray<uint32_t>::Allocate(members_.front().nodes.size(), "flags")));
  for (const PlanMember& member : members_) {
    PS_RETURN_IF_ERROR(member.context->Enter());
    PS_RETURN_IF_ERROR(Keep(streams_.emplace_back(), DeviceContext::NewUrgentStream()));
  }
  std::vector<ncclComm_t> communicators(devices.size());
  const absl::Status made = PS_CUDA_STATUS(
      nccl_.CommInitAll(communicators.data(), static_cast<int>(devices.size()), devices.data()));
  if (!made.ok()) return CannotConnect(made);
  communicators_ = std::move(communicators);
  return absl::OkStatus();
}

absl::Status GroupGradients::CannotConnect(const absl::Status& status) {
  return absl::InvalidArgumentError(absl::StrCat(
      status.message(),
      "; the worker's GPUs cannot be connected: NCCL needs room in /dev/shm and a driver as new as "
      "itself; or set compute.device to one of them"));
}

GroupGradients::~GroupGradients() {
  // Errors here cannot be handled.
  for (ncclComm_t communicator : communicators_) {
    (void)(has_failed_ ? nccl_.CommAbort(communicator) : nccl_.CommDestroy(communicator));
  }
  for (size_t i = 0; i < streams_.size(); ++i) {
    (void)members_[i].context->Enter();
    (void)cudaStreamSynchronize(streams_[i]);
    (void)cudaStreamDestroy(streams_[i]);
  }
}

absl::Status GroupGradients::Collect(size_t i, ParameterRange range) {
  if (has_failed_) return absl::AbortedError("one of the worker's GPUs has failed");
  PS_RETURN_IF_ERROR(AddUp(range));
  for (size_t k = 0; k < members_.size(); ++k) {
    const DeviceContext& context = *members_[k].context;
    PS_RETURN_IF_ERROR(context.Enter());
    // Makes the next pass, which overwrites these gradients, wait.
    PS_RETURN_IF_ERROR(context.Order(streams_[k], context.compute()));
  }
  const PlanMember& first = members_.front();
  const cudaStream_t download = first.context->download();
  PS_RETURN_IF_ERROR(first.context->Enter());
  PS_RETURN_IF_ERROR(first.context->Order(streams_.front(), download));
  PS_RETURN_IF_ERROR(first.Download(map_, range, host_));
  const auto* inputs = reinterpret_cast<const PassInputs*>(first.memory.batch.data());
  return Raise(download, inputs, flags_.data() + i);
}

absl::Status GroupGradients::AddUp(ParameterRange range) {
  const MutexLock lock(launching_);
  // All devices in one group: a thread that waited for one device's part of a sum would never start
  // the next device's.
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
                                         communicators_[i], streams_[i]));
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
