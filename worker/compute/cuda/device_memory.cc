#include "worker/compute/cuda/device_memory.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "worker/compute/cuda/cuda_status.h"

namespace slipstream::cuda {
namespace {

constexpr size_t kBytesMin = 4096;

absl::Status NoMemory(size_t bytes, std::string_view what, const std::string& where) {
  // Clear the error, or the next launch would report it.
  (void)cudaGetLastError();
  return absl::ResourceExhaustedError("no memory for " + std::to_string(bytes) + " bytes of " +
                                      std::string(what) + where);
}

std::string FreeOnDevice() {
  size_t free = 0;
  size_t total = 0;
  if (cudaMemGetInfo(&free, &total) != cudaSuccess) return " on the GPU";
  return " on the GPU, of whose " + std::to_string(total) + " bytes " + std::to_string(free) +
         " are free: lower training.batch_size or training.pipeline_depth, or run fewer workers "
         "on it";
}

}  // namespace

absl::StatusOr<void*> AllocateOnDevice(size_t bytes, std::string_view what) {
  void* memory = nullptr;
  bytes = std::max(bytes, kBytesMin);
  const cudaError_t error = cudaMalloc(&memory, bytes);
  if (error == cudaErrorMemoryAllocation) return NoMemory(bytes, what, FreeOnDevice());
  PS_RETURN_IF_ERROR(ToStatus(error, {__FILE__, __LINE__, "cudaMalloc"}));
  return memory;
}

absl::StatusOr<void*> AllocatePinned(size_t bytes, std::string_view what) {
  void* memory = nullptr;
  bytes = std::max(bytes, kBytesMin);
  const cudaError_t error =
      cudaHostAlloc(&memory, bytes, cudaHostAllocPortable | cudaHostAllocMapped);
  if (error == cudaErrorMemoryAllocation) {
    return NoMemory(bytes, what, " that the GPU can read, on this machine");
  }
  PS_RETURN_IF_ERROR(ToStatus(error, {__FILE__, __LINE__, "cudaHostAlloc"}));
  std::memset(memory, 0, bytes);
  return memory;
}

absl::StatusOr<PinnedPages> PinnedPages::Pin(std::span<std::byte> memory) {
  const cudaError_t error =
      cudaHostRegister(memory.data(), memory.size(), cudaHostRegisterPortable);
  // Clear the error, or the next launch would report it.
  if (error != cudaSuccess) (void)cudaGetLastError();
  PS_RETURN_IF_ERROR(ToStatus(error, {__FILE__, __LINE__, "cudaHostRegister"}));
  PinnedPages pages;
  pages.memory_.reset(memory.data());
  return pages;
}

}  // namespace slipstream::cuda
