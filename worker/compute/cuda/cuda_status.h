#ifndef SLIPSTREAM_WORKER_COMPUTE_CUDA_CUDA_STATUS_H_
#define SLIPSTREAM_WORKER_COMPUTE_CUDA_CUDA_STATUS_H_

#include <cublasLt.h>
#include <cuda_runtime.h>
#include <cudnn.h>
#include <nccl.h>

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace slipstream::cuda {

/// Converts errors of the toolkit to statuses that name the file, the line, the call and the
/// meaning of the error. Errors that a user can fix (no device, an old driver) are
/// INVALID_ARGUMENT; short memory is RESOURCE_EXHAUSTED; a lost device is ABORTED, so that the
/// worker exits as one to restart; all others are INTERNAL.

/// The place of a call in the source.
struct CallSite {
  const char* file = "";
  int line = 0;
  const char* call = "";
};

absl::Status ToStatus(cudaError_t error, const CallSite& site);
absl::Status ToStatus(cublasStatus_t error, const CallSite& site);
absl::Status ToStatus(cudnnStatus_t error, const CallSite& site);
absl::Status ToStatus(ncclResult_t error, const CallSite& site);

/// Moves the value, if there is one, into `kept`; else returns the status.
template <typename Kept, typename T>
absl::Status Keep(Kept& kept, absl::StatusOr<T> value) {
  if (!value.ok()) return value.status();
  kept = *std::move(value);
  return absl::OkStatus();
}

}  // namespace slipstream::cuda

/// The status of a call into the toolkit.
#define PS_CUDA_STATUS(call) \
  ::slipstream::cuda::ToStatus((call), ::slipstream::cuda::CallSite{__FILE__, __LINE__, #call})

/// Returns from the calling function, which returns a status, unless `status` is OK.
#define PS_RETURN_IF_ERROR(status)                                         \
  do {                                                                     \
    if (absl::Status returned = (status); !returned.ok()) return returned; \
  } while (false)

#define PS_RETURN_IF_CUDA_ERROR(call) PS_RETURN_IF_ERROR(PS_CUDA_STATUS(call))

#endif  // SLIPSTREAM_WORKER_COMPUTE_CUDA_CUDA_STATUS_H_
