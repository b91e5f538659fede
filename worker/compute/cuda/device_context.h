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

/// One plan's access to one device: streams of its own, and the libraries' handles. None of the
/// streams waits for the default stream, or for streams of another plan.
///
/// Not thread-safe, except Enter and the streams: CUDA lets any thread enqueue.
class DeviceContext {
 public:
  /// How long a device may take before it counts as hung; the driver does not always report that.
  /// Constant except in tests.
  static inline absl::Duration wait_max = absl::Minutes(2);

  /// True if more than wait_max has passed since `begin`. Uses the steady clock, because the time
  /// of day may be set.
  static bool IsTooLong(std::chrono::steady_clock::time_point begin) {
    return absl::FromChrono(std::chrono::steady_clock::now() - begin) > wait_max;
  }

  /// True if a device of this process has hung. Calls that wait for it, for example to free memory,
  /// may never return, so its memory has to be left to the end of the process.
  static bool HasHung() { return has_hung_; }

  /// Notes that a device has hung, and returns ABORTED; HasHung is true from now on.
  static absl::Status Hung();

  /// The number of devices, at least one. INVALID_ARGUMENT if there is none.
  static absl::StatusOr<int> Count();

  /// Opens a device. INVALID_ARGUMENT, naming the remedy, if there is no device of that index, its
  /// driver is too old, or a library is missing.
  static absl::StatusOr<std::unique_ptr<DeviceContext>> Open(int device);

  ~DeviceContext();
  DeviceContext(const DeviceContext&) = delete;
  DeviceContext& operator=(const DeviceContext&) = delete;

  /// Makes the device current in the calling thread. Each function that allocates, enqueues or
  /// waits must call this first.
  absl::Status Enter() const;

  /// The stream of kernels, and of copies of batches.
  cudaStream_t compute() const { return compute_; }

  /// The stream that sends weights to the device.
  cudaStream_t upload() const { return upload_; }

  /// The stream that sends gradients to the host, with priority over other work.
  cudaStream_t download() const { return download_; }

  /// True if all work of the stream is done.
  static absl::StatusOr<bool> IsDone(cudaStream_t stream);

  /// Waits for that by polling. ABORTED if it takes longer than wait_max.
  static absl::Status Await(cudaStream_t stream);

  /// Returns a stream of the current device whose kernels begin before waiting kernels of other
  /// streams, so that data that leaves the device does not queue behind later computations.
  static absl::StatusOr<cudaStream_t> NewUrgentStream();

  /// Makes work enqueued on `later` from now on wait for the work that `earlier` holds already.
  /// This also works while a graph is captured, and then pulls `later` into the graph.
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
  cudaEvent_t order_ = nullptr;  // Reused: each use records it and waits for it at once.
  const CublasLt* blas_ = nullptr;
  const Cudnn* dnn_ = nullptr;
  cublasLtHandle_t blas_handle_ = nullptr;
  cudnnHandle_t dnn_handle_ = nullptr;
};

}  // namespace slipstream::cuda

#endif  // SLIPSTREAM_WORKER_COMPUTE_CUDA_DEVICE_CONTEXT_H_
