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

// What the simulated cuBLAS, cuDNN and NCCL share.

/// The handles and descriptors that a library gives out are pointers to types of its own.
template <typename Handle, typename Owned>
Handle Given(Owned* owned) {
  return reinterpret_cast<Handle>(owned);
}
template <typename Owned, typename Handle>
Owned& Of(Handle handle) {
  return *reinterpret_cast<Owned*>(handle);
}

/// What a library keeps for one device.
struct LibraryHandle {
  int device = current_device;
  cudaStream_t stream = nullptr;
  std::set<std::vector<uint64_t>> called;

  /// What a library does at its first call of a kind cannot always be captured, so here it never
  /// can. Kinds are told apart by `kind`.
  bool MayCall(cudaStream_t on, std::vector<uint64_t> kind) {
    if (IsCaptured(on)) return called.contains(kind);
    called.insert(std::move(kind));
    return true;
  }
};

/// A handle may be used only while its device is current.
template <typename Handle>
bool IsHere(Handle handle) {
  return Of<LibraryHandle>(handle).device == current_device;
}

/// What tensor cores read of a value: 10 bits after the point.
inline float AsTf32(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  return std::bit_cast<float>((bits + 0xfff + ((bits >> 13) & 1)) & ~uint32_t{0x1fff});
}

/// Whoever keeps something in a workspace across calls finds it gone.
inline void Spoil(void* workspace, size_t bytes) { std::memset(workspace, 0xff, bytes); }

}  // namespace slipstream::simulated

#endif  // SLIPSTREAM_TESTS_GPU_SIMULATED_LIBRARY_CALLS_H_
