#ifndef SLIPSTREAM_TESTS_GPU_SIMULATED_MEMORY_H_
#define SLIPSTREAM_TESTS_GPU_SIMULATED_MEMORY_H_

#include <cuda_runtime.h>

#include <cstddef>

namespace slipstream::simulated {

/// Memory of devices, and the host's memory as devices access it. All of it is really the host's,
/// so a read of device memory by the host is not detected. But memory holds NaN until it is
/// written, and every copy has to lie within one allocation. All functions may be called from any
/// thread.

inline constexpr size_t kDeviceBytes = size_t{2} << 30;  // The memory of each device.

/// Allocates memory of the current device.
cudaError_t NewOnDevice(void** memory, size_t bytes);
cudaError_t NewPinned(void** memory, size_t bytes);
cudaError_t Delete(void* memory);

/// Pins host memory that the caller has allocated. Two pinned ranges may not share a page.
cudaError_t Pin(void* memory, size_t bytes);
cudaError_t Unpin(void* memory);
size_t FreeBytes();  // On the current device.

/// The place in which [memory, memory + bytes) lies.
enum class Where {
  kDevice,       // On the current device.
  kOtherDevice,  // On another device, so out of reach.
  kPinned,
  kElsewhere,  // Unknown here, so presumably the host's.
  kBeyond,     // Begins in an allocation and extends beyond its end.
};
Where Find(const void* memory, size_t bytes);

inline bool IsOnDevice(const void* memory, size_t bytes) {
  return Find(memory, bytes) == Where::kDevice;
}

}  // namespace slipstream::simulated

#endif  // SLIPSTREAM_TESTS_GPU_SIMULATED_MEMORY_H_
