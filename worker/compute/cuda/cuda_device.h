#ifndef SLIPSTREAM_WORKER_COMPUTE_CUDA_CUDA_DEVICE_H_
#define SLIPSTREAM_WORKER_COMPUTE_CUDA_CUDA_DEVICE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/compute/plan.h"

namespace slipstream {

/// The NVIDIA GPU of that number, as CUDA_VISIBLE_DEVICES leaves them. Its plans return from
/// StartStep while the device computes.
///
/// Equal inputs give equal bits on GPUs of one kind, whatever a plan computed before, unless its
/// options say that they need not; they differ from a processor's by how sums are ordered.
///
/// INVALID_ARGUMENT, with the remedy, if there is no such GPU, its driver is too old, a library is
/// missing, or this program was built without CUDA; ABORTED if the GPU does not answer.
///
/// Thread-safe: holds no state.
absl::StatusOr<std::unique_ptr<Device>> NewCudaDevice(uint32_t index);

/// Several of them for one worker: each computes a part of every mini-batch, on the first the
/// gradients are added up by NCCL. Equal inputs give equal bits as far as NCCL adds in one order.
/// One alone is possible, and is taken the same way.
///
/// INVALID_ARGUMENT also if NCCL is missing, none is named, or one twice; from Prepare, if they
/// cannot be connected. A plan that only evaluates computes on the first of them alone.
absl::StatusOr<std::unique_ptr<Device>> NewCudaDeviceGroup(const std::vector<uint32_t>& indices);

/// What each of them is called by whatever process, in the order of indices; at least one, with the
/// errors of NewCudaDevice where there is none.
absl::StatusOr<std::vector<std::string>> CudaDeviceNames();

/// Whether this program was built with CUDA.
bool HasCuda();

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_COMPUTE_CUDA_CUDA_DEVICE_H_
