#include "worker/compute/cuda/cuda_status.h"

#include <string>

#include "worker/compute/cuda/cuda_libraries.h"
#include "worker/compute/cuda/launch_status.h"

namespace slipstream::cuda {
namespace {

absl::StatusCode CodeOf(cudaError_t error) {
  switch (error) {
    case cudaErrorMemoryAllocation:
      return absl::StatusCode::kResourceExhausted;
    case cudaErrorNoDevice:
    case cudaErrorInvalidDevice:
    case cudaErrorInsufficientDriver:
    case cudaErrorCallRequiresNewerDriver:
    case cudaErrorStubLibrary:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorCompatNotSupportedOnDevice:
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorUnsupportedPtxVersion:
      return absl::StatusCode::kInvalidArgument;
    // This process cannot use the device again, but another one may.
    case cudaErrorDevicesUnavailable:
    case cudaErrorDeviceUninitialized:
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorHardwareStackError:
    case cudaErrorLaunchFailure:
    case cudaErrorLaunchTimeout:
    case cudaErrorSystemNotReady:
    case cudaErrorContained:
    case cudaErrorMpsClientTerminated:
    case cudaErrorExternalDevice:
    case cudaErrorUnknown:
      return absl::StatusCode::kAborted;
    default:
      return absl::StatusCode::kInternal;
  }
}

absl::StatusCode CodeOf(cudnnStatus_t error) {
  switch (error) {
    case CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED:
    case CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED:
      return absl::StatusCode::kResourceExhausted;
    case CUDNN_STATUS_NOT_SUPPORTED_INCOMPATIBLE_CUDA_DRIVER:
      return absl::StatusCode::kInvalidArgument;
    default:
      return absl::StatusCode::kInternal;
  }
}

/// Returns what a user can do about the error; empty if there is nothing to add.
std::string RemedyFor(cudaError_t error) {
  switch (error) {
    case cudaErrorNoDevice:
      return "; no GPU is visible here: set compute.device to cpu, or see nvidia-smi and "
             "CUDA_VISIBLE_DEVICES";
    case cudaErrorInsufficientDriver:
    case cudaErrorCallRequiresNewerDriver:
    case cudaErrorStubLibrary:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorCompatNotSupportedOnDevice:
    case cudaErrorUnsupportedPtxVersion:
      return "; there is no driver for CUDA " + std::to_string(CUDART_VERSION / 1000) + "." +
             std::to_string(CUDART_VERSION % 1000 / 10) +
             " or newer here: install one, or set compute.device to cpu";
    case cudaErrorNoKernelImageForDevice:
      return "; this GPU is older than those this program was built for (sm_80): set "
             "compute.device to cpu";
    default:
      return "";
  }
}

absl::Status Failure(absl::StatusCode code, const CallSite& site, const std::string& meaning) {
  return absl::Status(code, "CUDA: " + meaning + " (" + site.call + " at " + site.file + ":" +
                                std::to_string(site.line) + ")");
}

}  // namespace

absl::Status ToStatus(cudaError_t error, const CallSite& site) {
  if (error == cudaSuccess) return absl::OkStatus();
  // Clear the error, or the next launch would report it.
  (void)cudaGetLastError();
  return Failure(CodeOf(error), site, std::string(cudaGetErrorString(error)) + RemedyFor(error));
}

absl::Status ToStatus(cublasStatus_t error, const CallSite& site) {
  if (error == CUBLAS_STATUS_SUCCESS) return absl::OkStatus();
  const auto code = error == CUBLAS_STATUS_ALLOC_FAILED ? absl::StatusCode::kResourceExhausted
                                                        : absl::StatusCode::kInternal;
  const auto library = CublasLt::Load();
  const std::string meaning =
      library.ok() ? (*library)->GetStatusString(error) : std::to_string(error);
  return Failure(code, site, "cuBLAS: " + meaning);
}

absl::Status ToStatus(cudnnStatus_t error, const CallSite& site) {
  if (error == CUDNN_STATUS_SUCCESS) return absl::OkStatus();
  const auto library = Cudnn::Load();
  const std::string meaning =
      library.ok() ? (*library)->GetErrorString(error) : std::to_string(error);
  return Failure(CodeOf(error), site, "cuDNN: " + meaning);
}

absl::Status ToStatus(ncclResult_t error, const CallSite& site) {
  if (error == ncclSuccess) return absl::OkStatus();
  // NCCL could not continue on its devices or with its peers; another process may succeed.
  const bool may_be_tried_again =
      error == ncclUnhandledCudaError || error == ncclSystemError || error == ncclRemoteError;
  const auto library = Nccl::Load();
  const std::string meaning =
      library.ok() ? (*library)->GetErrorString(error) : std::to_string(error);
  return Failure(may_be_tried_again ? absl::StatusCode::kAborted : absl::StatusCode::kInternal,
                 site, "NCCL: " + meaning);
}

absl::Status LaunchStatus(std::string_view kernel) {
  const cudaError_t error = cudaGetLastError();
  if (error == cudaSuccess) return absl::OkStatus();
  return absl::Status(CodeOf(error), "CUDA: " + std::string(cudaGetErrorString(error)) +
                                         RemedyFor(error) + " (launching " + std::string(kernel) +
                                         ")");
}

}  // namespace slipstream::cuda
