#include "worker/compute/cuda/cuda_device.h"

namespace slipstream {

// Linked into programs that are built without --config=cuda.

namespace {

absl::Status WithoutCuda() {
  return absl::InvalidArgumentError(
      "this program computes on processors only: build it with --config=cuda for GPUs, or set "
      "compute.device to cpu");
}

}  // namespace

bool HasCuda() { return false; }
absl::StatusOr<std::vector<std::string>> CudaDeviceNames() { return WithoutCuda(); }
absl::StatusOr<std::unique_ptr<Device>> NewCudaDevice(uint32_t) { return WithoutCuda(); }
absl::StatusOr<std::unique_ptr<Device>> NewCudaDeviceGroup(const std::vector<uint32_t>&) {
  return WithoutCuda();
}

}  // namespace slipstream
