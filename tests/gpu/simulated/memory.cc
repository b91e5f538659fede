#include "tests/gpu/simulated/memory.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>

#include "common/base/mutex.h"
#include "tests/gpu/simulated/devices.h"

namespace slipstream::simulated {
namespace {

constexpr size_t kAlignment = 256;
constexpr size_t kPage = 4096;
constexpr int kUnset = 0xff;  // Four of these bytes are a NaN.

struct Block {
  size_t bytes = 0;
  bool is_pinned = false;
  bool is_of_others = false;
  int device = current_device;  // Not used for pinned memory.

  bool is_here() const { return !is_pinned && device == current_device; }
};

Mutex memory_mutex;
std::map<const char*, Block>& Blocks() ABSL_EXCLUSIVE_LOCKS_REQUIRED(memory_mutex) {
  static auto& blocks = *new std::map<const char*, Block>;
  return blocks;
}

size_t FreeOnDevice() ABSL_EXCLUSIVE_LOCKS_REQUIRED(memory_mutex) {
  size_t taken = 0;
  for (const auto& [begin, block] : Blocks()) taken += block.is_here() ? block.bytes : 0;
  return kDeviceBytes - taken;
}

cudaError_t New(void** memory, Block block) {
  const size_t whole = (block.bytes + kAlignment - 1) / kAlignment * kAlignment;
  MutexLock lock(memory_mutex);
  if (!block.is_pinned && block.bytes > FreeOnDevice()) return cudaErrorMemoryAllocation;
  *memory = std::aligned_alloc(kAlignment, whole);
  if (*memory == nullptr) return cudaErrorMemoryAllocation;
  std::memset(*memory, kUnset, block.bytes);
  Blocks().emplace(static_cast<const char*>(*memory), block);
  return cudaSuccess;
}

}  // namespace

cudaError_t NewOnDevice(void** memory, size_t bytes) { return New(memory, {.bytes = bytes}); }
cudaError_t NewPinned(void** memory, size_t bytes) {
  return New(memory, {.bytes = bytes, .is_pinned = true});
}

cudaError_t Delete(void* memory) {
  if (memory == nullptr) return cudaSuccess;
  MutexLock lock(memory_mutex);
  const auto found = Blocks().find(static_cast<const char*>(memory));
  if (found == Blocks().end() || found->second.is_of_others) return cudaErrorInvalidValue;
  Blocks().erase(found);
  std::free(memory);
  return cudaSuccess;
}

cudaError_t Pin(void* memory, size_t bytes) {
  const auto* const begin = static_cast<const char*>(memory);
  if (memory == nullptr || bytes == 0) return cudaErrorInvalidValue;
  const auto page_of = [](const char* at) { return reinterpret_cast<uintptr_t>(at) / kPage; };
  MutexLock lock(memory_mutex);
  for (const auto& [other, block] : Blocks()) {
    const bool is_apart = page_of(other + block.bytes - 1) < page_of(begin) ||
                          page_of(other) > page_of(begin + bytes - 1);
    if (block.is_of_others && !is_apart) return cudaErrorHostMemoryAlreadyRegistered;
  }
  Blocks().emplace(begin, Block{.bytes = bytes, .is_pinned = true, .is_of_others = true});
  return cudaSuccess;
}

cudaError_t Unpin(void* memory) {
  MutexLock lock(memory_mutex);
  const auto found = Blocks().find(static_cast<const char*>(memory));
  if (found == Blocks().end() || !found->second.is_of_others) {
    return cudaErrorHostMemoryNotRegistered;
  }
  Blocks().erase(found);
  return cudaSuccess;
}

size_t FreeBytes() {
  MutexLock lock(memory_mutex);
  return FreeOnDevice();
}

Where Find(const void* memory, size_t bytes) {
  const char* const begin = static_cast<const char*>(memory);
  MutexLock lock(memory_mutex);
  auto found = Blocks().upper_bound(begin);
  if (found == Blocks().begin()) return Where::kElsewhere;
  --found;
  const auto offset = static_cast<size_t>(begin - found->first);
  const Block& block = found->second;
  if (offset >= std::max<size_t>(block.bytes, 1)) return Where::kElsewhere;
  if (bytes > block.bytes - offset) return Where::kBeyond;
  if (block.is_pinned) return Where::kPinned;
  return block.is_here() ? Where::kDevice : Where::kOtherDevice;
}

}  // namespace slipstream::simulated
