#include "worker/compute/cuda/device_context.h"

#include <string>
#include <thread>

#include "common/base/duration_text.h"
#include "worker/compute/cuda/cuda_status.h"

namespace slipstream::cuda {

absl::StatusOr<int> DeviceContext::Count() {
  int devices = 0;
  PS_RETURN_IF_CUDA_ERROR(cudaGetDeviceCount(&devices));
  if (devices > 0) return devices;
  return ToStatus(cudaErrorNoDevice, {__FILE__, __LINE__, "cudaGetDeviceCount"});
}

absl::StatusOr<std::unique_ptr<DeviceContext>> DeviceContext::Open(int device) {
  const absl::StatusOr<int> devices = Count();
  if (!devices.ok()) return devices.status();
  if (device < 0 || device >= *devices) {
    return absl::InvalidArgumentError("there is no GPU " + std::to_string(device) +
                                      ": this machine has " + std::to_string(*devices) +
                                      ", numbered from 0; set compute.device to one of them");
  }
  std::unique_ptr<DeviceContext> context(new DeviceContext(device));
  PS_RETURN_IF_ERROR(context->Start());
  return context;
}

absl::Status DeviceContext::Start() {
  PS_RETURN_IF_ERROR(Enter());
  PS_RETURN_IF_CUDA_ERROR(cudaStreamCreateWithFlags(&compute_, cudaStreamNonBlocking));
  PS_RETURN_IF_CUDA_ERROR(cudaStreamCreateWithFlags(&upload_, cudaStreamNonBlocking));
  PS_RETURN_IF_ERROR(Keep(download_, NewUrgentStream()));
  PS_RETURN_IF_CUDA_ERROR(cudaEventCreateWithFlags(&order_, cudaEventDisableTiming));
  const auto blas = CublasLt::Load();
  if (!blas.ok()) return blas.status();
  blas_ = *blas;
  PS_RETURN_IF_CUDA_ERROR(blas_->Create(&blas_handle_));
  const auto dnn = Cudnn::Load();
  if (!dnn.ok()) return dnn.status();
  dnn_ = *dnn;
  PS_RETURN_IF_CUDA_ERROR(dnn_->Create(&dnn_handle_));
  return PS_CUDA_STATUS(dnn_->SetStream(dnn_handle_, compute_));
}

DeviceContext::~DeviceContext() {
  // Errors here cannot be handled; a lost device gives one for each call.
  (void)cudaSetDevice(device_);
  for (cudaStream_t stream : {compute_, upload_, download_}) {
    if (stream != nullptr) (void)cudaStreamSynchronize(stream);
  }
  if (dnn_handle_ != nullptr) (void)dnn_->Destroy(dnn_handle_);
  if (blas_handle_ != nullptr) (void)blas_->Destroy(blas_handle_);
  if (order_ != nullptr) (void)cudaEventDestroy(order_);
  for (cudaStream_t stream : {compute_, upload_, download_}) {
    if (stream != nullptr) (void)cudaStreamDestroy(stream);
  }
  // Clear the errors, or the next launch would report them.
  (void)cudaGetLastError();
}

absl::Status DeviceContext::Enter() const { return PS_CUDA_STATUS(cudaSetDevice(device_)); }

absl::StatusOr<bool> DeviceContext::IsDone(cudaStream_t stream) {
  const cudaError_t state = cudaStreamQuery(stream);
  if (state == cudaErrorNotReady) {
    // CUDA records this as an error, which the next launch would report.
    (void)cudaGetLastError();
    return false;
  }
  PS_RETURN_IF_ERROR(ToStatus(state, {__FILE__, __LINE__, "cudaStreamQuery"}));
  return true;
}

absl::Status DeviceContext::Await(cudaStream_t stream) {
  const auto begin = std::chrono::steady_clock::now();
  while (true) {
    const absl::StatusOr<bool> is_done = IsDone(stream);
    if (!is_done.ok() || *is_done) return is_done.status();
    if (IsTooLong(begin)) return Hung();
    std::this_thread::yield();
  }
}

absl::Status DeviceContext::Hung() {
  has_hung_ = true;
  return absl::AbortedError("the GPU has not done what it was given for " + DurationText(wait_max));
}

absl::StatusOr<cudaStream_t> DeviceContext::NewUrgentStream() {
  int least = 0;
  int greatest = 0;
  PS_RETURN_IF_CUDA_ERROR(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  cudaStream_t stream = nullptr;
  PS_RETURN_IF_CUDA_ERROR(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, greatest));
  return stream;
}

absl::Status DeviceContext::Order(cudaStream_t earlier, cudaStream_t later) const {
  PS_RETURN_IF_CUDA_ERROR(cudaEventRecord(order_, earlier));
  return PS_CUDA_STATUS(cudaStreamWaitEvent(later, order_, 0));
}

}  // namespace slipstream::cuda
