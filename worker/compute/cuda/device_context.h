#ifndef SLIPSTREAM_WORKER_COMPUTE_CUDA_DEVICE_CONTEXT_H_
#define SLIPSTREAM_WORKER_COMPUTE_CUDA_DEVICE_CONTEXT_H_

#include <cublasLt.h>
#include <cuda_runtime.h>
#include <cudnn.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "worker/compute/cuda/cuda_libraries.h"

namespace slipstream::cuda {

/// One device as one plan uses it: streams of its own, and the libraries' handles. None of the
/// streams waits for the default stream, nor for those of another plan.
///
/// Not thread-safe, but for Enter and the streams: CUDA lets any thread enqueue.
class DeviceContext {
 public:
  /// A device that has not done what it was given by then hangs: the driver does not always say so.
  /// Constant but in tests.
  static inline absl::Duration wait_max = absl::Minutes(2);

  /// Whether it has been waited for so long since `begin`. Not by the time of day, which is set.
  static bool IsTooLong(std::chrono::steady_clock::time_point begin) {
    return absl::FromChrono(std::chrono::steady_clock::now() - begin) > wait_max;
  }

  /// Whether a device of this process has hung. Calls that wait for it, to free memory say, may
  /// never return: what lies there is to be left to the end of the process.
  static bool HasHung() { return has_hung_; }

  /// ABORTED, of one that does: HasHung from now on.
  static absl::Status Hung();

  /// Of devices; at least one. INVALID_ARGUMENT if there is none.
  static absl::StatusOr<int> Count();

  /// INVALID_ARGUMENT, with the remedy, if there is no device of that index, its driver is too old,
  /// or a library is missing.
  static absl::StatusOr<std::unique_ptr<DeviceContext>> Open(int device);

  ~DeviceContext();
  DeviceContext(const DeviceContext&) = delete;
  DeviceContext& operator=(const DeviceContext&) = delete;

  /// Makes the device the calling thread's. To be called first by each function that allocates,
  /// enqueues or waits.
  absl::Status Enter() const;

  /// Kernels, and copies of batches.
  cudaStream_t compute() const { return compute_; }

  /// Weights on their way to the device.
  cudaStream_t upload() const { return upload_; }

  /// Gradients on their way to the host; before what else there is to compute.
  cudaStream_t download() const { return download_; }

  /// Whether all that the stream holds is done.
  static absl::StatusOr<bool> IsDone(cudaStream_t stream);

  /// Waits for that, awake. ABORTED if it takes longer than wait_max.
  static absl::Status Await(cudaStream_t stream);

  /// A stream of the calling thread's device whose kernels begin before those of others that wait,
  /// so that what leaves the device does not do so behind what is computed meanwhile.
  static absl::StatusOr<cudaStream_t> NewUrgentStream();

  /// What is enqueued on `later` from now on waits for what `earlier` holds already. Also while a
  /// graph is captured, into which it pulls `later`.
  absl::Status Order(cudaStream_t earlier, cudaStream_t later) const;

  const CublasLt& blas() const { return *blas_; }
  cublasLtHandle_t blas_handle() const { return blas_handle_; }
  const Cudnn& dnn() const { return *dnn_; }
  cudnnHandle_t dnn_handle() const { return dnn_handle_; }

 private:
  static inline std::atomic<bool> has_hung_ = false;

  explicit DeviceContext(int device) : device_(device) {}

  absl::Status Start();

  const int device_;

  cudaStream_t compute_ = nullptr;
  cudaStream_t upload_ = nullptr;
  cudaStream_t download_ = nullptr;
  cudaEvent_t order_ = nullptr;  // Recorded and waited for at once, again and again.
  const CublasLt* blas_ = nullptr;
  const Cudnn* dnn_ = nullptr;
  cublasLtHandle_t blas_handle_ = nullptr;
  cudnnHandle_t dnn_handle_ = nullptr;
};

}  // namespace slipstream::cuda

#endif  // SLIPSTREAM_WORKER_COMPUTE_CUDA_DEVICE_CONTEXT_H_
