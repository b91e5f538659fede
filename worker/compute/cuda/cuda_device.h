#ifndef SLIPSTREAM_WORKER_COMPUTE_CUDA_CUDA_DEVICE_H_
#define SLIPSTREAM_WORKER_COMPUTE_CUDA_CUDA_DEVICE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/compute/plan.h"

namespace slipstream {

/// Returns the NVIDIA GPU with that index among those that CUDA_VISIBLE_DEVICES leaves visible. Its
/// plans return from StartStep while the device computes.
///
/// Equal inputs give equal bits on GPUs of one kind, whatever a plan computed before, unless its
/// options permit otherwise. They differ from a CPU's results, because sums are ordered
/// differently.
///
/// Fails with INVALID_ARGUMENT, naming the remedy, if there is no such GPU, its driver is too old,
/// a library is missing, or this program was built without CUDA; and with ABORTED if the GPU does
/// not answer.
///
/// Thread-safe: holds no state.
absl::StatusOr<std::unique_ptr<Device>> NewCudaDevice(uint32_t index);

/// Returns several GPUs as one device for one worker. Each computes a part of every mini-batch, and
/// NCCL sums the gradients on the first. Equal inputs give equal bits if NCCL adds in the same
/// order. A group of one is possible and works in the same way.
///
/// Fails also with INVALID_ARGUMENT if NCCL is missing, no GPU is named, or one is named twice;
/// Prepare fails with it if the GPUs cannot be connected. A plan that only evaluates computes only
/// on the first.
absl::StatusOr<std::unique_ptr<Device>> NewCudaDeviceGroup(const std::vector<uint32_t>& indices);

/// Returns the names of the GPUs, in the order of indices; every process uses the same names.
/// Returns at least one; if there is none, fails as NewCudaDevice does.
absl::StatusOr<std::vector<std::string>> CudaDeviceNames();

/// True if this program was built with CUDA.
bool HasCuda();

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_COMPUTE_CUDA_CUDA_DEVICE_H_
