#include "worker/compute/cuda/gradient_sum.h"

#include <utility>

#include "common/base/check.h"
#include "worker/compute/cuda/cuda_status.h"

namespace slipstream::cuda {
namespace {

constexpr int kRoot = 0;

}  // namespace

absl::StatusOr<std::unique_ptr<GradientSum>> GradientSum::New(const std::vector<int>& devices) {
  const absl::StatusOr<const Nccl*> nccl = Nccl::Load();
  if (!nccl.ok()) return nccl.status();
  std::unique_ptr<GradientSum> sum(new GradientSum(**nccl));
  std::vector<ncclComm_t> communicators(devices.size());
  PS_RETURN_IF_CUDA_ERROR(sum->nccl_.CommInitAll(communicators.data(),
                                                 static_cast<int>(devices.size()), devices.data()));
  sum->communicators_ = std::move(communicators);
  return sum;
}

// Nothing can be done about errors here.

GradientSum::~GradientSum() {
  for (ncclComm_t communicator : communicators_) (void)nccl_.CommDestroy(communicator);
}

void GradientSum::Fail() {
  for (ncclComm_t communicator : std::exchange(communicators_, {})) {
    (void)nccl_.CommAbort(communicator);
  }
}

absl::Status GradientSum::Enqueue(std::span<const Addend> addends,
                                  std::span<const ParameterRange> ranges) {
  PS_CHECK(addends.size() == communicators_.size());
  // One group: a thread that waited for one device's part of a sum would never come to the next's.
  PS_RETURN_IF_CUDA_ERROR(nccl_.GroupStart());
  const absl::Status enqueued = EnqueueAll(addends, ranges);
  const absl::Status ended = PS_CUDA_STATUS(nccl_.GroupEnd());
  return enqueued.ok() ? ended : enqueued;
}

absl::Status GradientSum::EnqueueAll(std::span<const Addend> addends,
                                     std::span<const ParameterRange> ranges) {
  for (const ParameterRange& range : ranges) {
    for (size_t i = 0; i < addends.size(); ++i) {
      float* const values = addends[i].gradients + range.begin;
      PS_RETURN_IF_CUDA_ERROR(nccl_.Reduce(values, values, range.size(), ncclFloat32, ncclSum,
                                           kRoot, communicators_[i], addends[i].stream));
    }
  }
  return absl::OkStatus();
}

absl::Status GradientSum::Check() const {
  for (ncclComm_t communicator : communicators_) {
    ncclResult_t error = ncclSuccess;
    PS_RETURN_IF_CUDA_ERROR(nccl_.CommGetAsyncError(communicator, &error));
    PS_RETURN_IF_ERROR(ToStatus(error, {__FILE__, __LINE__, "a sum over devices"}));
  }
  return absl::OkStatus();
}

}  // namespace slipstream::cuda
