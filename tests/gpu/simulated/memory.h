#ifndef SLIPSTREAM_TESTS_GPU_SIMULATED_MEMORY_H_
#define SLIPSTREAM_TESTS_GPU_SIMULATED_MEMORY_H_

#include <cuda_runtime.h>

#include <cstddef>

namespace slipstream::simulated {

/// Memory of devices, and of the host as they reach it. All of it is the host's, so that
/// whoever reads a device's from the host is not caught; but it holds NaN until it is written,
/// and every copy has to lie within one allocation. All functions may be called from any thread.

inline constexpr size_t kDeviceBytes = size_t{2} << 30;  // Of each device.

/// Of the current device.
cudaError_t NewOnDevice(void** memory, size_t bytes);
cudaError_t NewPinned(void** memory, size_t bytes);
cudaError_t Delete(void* memory);

/// Memory of the host's that somebody else has allocated. No two may have a page in common.
cudaError_t Pin(void* memory, size_t bytes);
cudaError_t Unpin(void* memory);
size_t FreeBytes();  // Of the current device.

/// Where [memory, memory + bytes) lies.
enum class Where {
  kDevice,       // The current one.
  kOtherDevice,  // Out of reach.
  kPinned,
  kElsewhere,  // The host's, as far as anybody knows here.
  kBeyond,     // It begins in an allocation and goes on behind its end.
};
Where Find(const void* memory, size_t bytes);

inline bool IsOnDevice(const void* memory, size_t bytes) {
  return Find(memory, bytes) == Where::kDevice;
}

}  // namespace slipstream::simulated

#endif  // SLIPSTREAM_TESTS_GPU_SIMULATED_MEMORY_H_
