#ifndef SLIPSTREAM_TESTS_GPU_SIMULATED_LIBRARY_CALLS_H_
#define SLIPSTREAM_TESTS_GPU_SIMULATED_LIBRARY_CALLS_H_

#include <cuda_runtime.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <set>
#include <utility>
#include <vector>

#include "tests/gpu/simulated/devices.h"
#include "tests/gpu/simulated/streams.h"

namespace slipstream::simulated {

// Code shared by the simulated cuBLAS, cuDNN and NCCL.

/// Given and Of convert between a library's own types and the handles and descriptors that it gives
/// out.
template <typename Handle, typename Owned>
Handle Given(Owned* owned) {
  return reinterpret_cast<Handle>(owned);
}
template <typename Owned, typename Handle>
Owned& Of(Handle handle) {
  return *reinterpret_cast<Owned*>(handle);
}

/// The state of a library on one device.
struct LibraryHandle {
  int device = current_device;
  cudaStream_t stream = nullptr;
  std::set<std::vector<uint64_t>> called;

  /// Returns whether a call of this kind may be made on the stream. Real libraries cannot always
  /// capture their first call of a kind; these never can.
  bool MayCall(cudaStream_t on, std::vector<uint64_t> kind) {
    if (IsCaptured(on)) return called.contains(kind);
    called.insert(std::move(kind));
    return true;
  }
};

/// Returns whether the handle's device is current. A handle may be used only then.
template <typename Handle>
bool IsHere(Handle handle) {
  return Of<LibraryHandle>(handle).device == current_device;
}

/// Returns the value as tensor cores read it: with 10 bits of fraction.
inline float AsTf32(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  return std::bit_cast<float>((bits + 0xfff + ((bits >> 13) & 1)) & ~uint32_t{0x1fff});
}

/// Overwrites a workspace, so that no caller can rely on its contents between calls.
inline void Spoil(void* workspace, size_t bytes) { std::memset(workspace, 0xff, bytes); }

}  // namespace slipstream::simulated

#endif  // SLIPSTREAM_TESTS_GPU_SIMULATED_LIBRARY_CALLS_H_
