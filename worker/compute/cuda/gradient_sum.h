#ifndef SLIPSTREAM_WORKER_COMPUTE_CUDA_GRADIENT_SUM_H_
#define SLIPSTREAM_WORKER_COMPUTE_CUDA_GRADIENT_SUM_H_

#include <cuda_runtime.h>
#include <nccl.h>

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/layout/tensor_layout.h"
#include "worker/compute/cuda/cuda_libraries.h"

namespace slipstream::cuda {

/// Adds up, with NCCL, what the devices of a plan have each computed of a gradient. The first of
/// them gets the sum.
///
/// Not thread-safe: owned by one plan.
class GradientSum {
 public:
  /// One device's gradients, and the stream on which they are there.
  struct Addend {
    float* gradients = nullptr;
    cudaStream_t stream = nullptr;
  };

  /// INVALID_ARGUMENT if NCCL is missing, or a device is named twice.
  static absl::StatusOr<std::unique_ptr<GradientSum>> New(const std::vector<int>& devices);

  /// Lets whatever is under way end first, unless Fail was called.
  ~GradientSum();
  GradientSum(const GradientSum&) = delete;
  GradientSum& operator=(const GradientSum&) = delete;

  /// Enqueues that the ranges (positions in the devices' memory) of the first device's gradients
  /// become the sums of all; the streams may be capturing. One addend for each device, in order.
  absl::Status Enqueue(std::span<const Addend> addends, std::span<const ParameterRange> ranges);

  /// An error of a sum under way.
  absl::Status Check() const;

  /// A device has failed: sums that are under way end, with any result, so that the others are not
  /// waited for in vain.
  void Fail();

 private:
  explicit GradientSum(const Nccl& nccl) : nccl_(nccl) {}

  absl::Status EnqueueAll(std::span<const Addend> addends, std::span<const ParameterRange> ranges);

  const Nccl& nccl_;
  std::vector<ncclComm_t> communicators_;  // Of each device; none after Fail.
};

}  // namespace slipstream::cuda

#endif  // SLIPSTREAM_WORKER_COMPUTE_CUDA_GRADIENT_SUM_H_
