#ifndef SLIPSTREAM_WORKER_COMPUTE_CUDA_DEVICE_MEMORY_H_
#define SLIPSTREAM_WORKER_COMPUTE_CUDA_DEVICE_MEMORY_H_

#include <cuda_runtime.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

#include "absl/status/statusor.h"

namespace slipstream::cuda {

/// Allocates at least a page, so that an empty array has an address too. RESOURCE_EXHAUSTED names
/// `what`, the bytes wanted and, for a device, the bytes that are free.
absl::StatusOr<void*> AllocateOnDevice(size_t bytes, std::string_view what);
absl::StatusOr<void*> AllocatePinned(size_t bytes, std::string_view what);

/// Host memory that somebody else has allocated, and that is pinned as long as this object exists:
/// the device copies to and from it by itself. Movable only.
class PinnedPages {
 public:
  PinnedPages() = default;

  /// Pins the memory. Fails if the system does not allow the device to access it.
  static absl::StatusOr<PinnedPages> Pin(std::span<std::byte> memory);

 private:
  struct Unpin {
    void operator()(void* memory) const { cudaHostUnregister(memory); }
  };

  std::unique_ptr<void, Unpin> memory_;
};

/// Values in the memory of the device that was current when they were allocated, uninitialised at
/// first. The host must access them only through copies.
template <typename T>
class DeviceArray {
 public:
  DeviceArray() = default;

  static absl::StatusOr<DeviceArray> Allocate(size_t size, std::string_view what) {
    const absl::StatusOr<void*> memory = AllocateOnDevice(size * sizeof(T), what);
    if (!memory.ok()) return memory.status();
    DeviceArray array;
    array.values_.reset(static_cast<T*>(*memory));
    array.size_ = size;
    return array;
  }

  T* data() const { return values_.get(); }
  size_t size() const { return size_; }

 private:
  struct Free {
    void operator()(T* values) const { cudaFree(values); }
  };

  std::unique_ptr<T, Free> values_;
  size_t size_ = 0;
};

/// Values in pinned host memory: the device copies to and from it by itself, and may access it at
/// the same address. Zero at first.
template <typename T>
class PinnedArray {
 public:
  PinnedArray() = default;

  static absl::StatusOr<PinnedArray> Allocate(size_t size, std::string_view what) {
    const absl::StatusOr<void*> memory = AllocatePinned(size * sizeof(T), what);
    if (!memory.ok()) return memory.status();
    PinnedArray array;
    array.values_.reset(static_cast<T*>(*memory));
    array.size_ = size;
    return array;
  }

  T* data() const { return values_.get(); }
  std::span<T> span() const { return {values_.get(), size_}; }

 private:
  struct Free {
    void operator()(T* values) const { cudaFreeHost(values); }
  };

  std::unique_ptr<T, Free> values_;
  size_t size_ = 0;
};

}  // namespace slipstream::cuda

#endif  // SLIPSTREAM_WORKER_COMPUTE_CUDA_DEVICE_MEMORY_H_
