#include "tests/gpu/simulated/memory.h"

#include <cstdlib>
#include <cstring>
#include <map>

#include "common/base/mutex.h"

namespace slipstream::simulated {
namespace {

constexpr size_t kAlignment = 256;
constexpr int kUnset = 0xff;  // Four of these are a NaN.

struct Block {
  size_t bytes = 0;
  bool is_pinned = false;
};

Mutex memory_mutex;
std::map<const char*, Block>& Blocks() ABSL_EXCLUSIVE_LOCKS_REQUIRED(memory_mutex) {
  static auto& blocks = *new std::map<const char*, Block>;
  return blocks;
}

size_t FreeOnDevice() ABSL_EXCLUSIVE_LOCKS_REQUIRED(memory_mutex) {
  size_t taken = 0;
  for (const auto& [begin, block] : Blocks()) taken += block.is_pinned ? 0 : block.bytes;
  return kDeviceBytes - taken;
}

cudaError_t New(void** memory, Block block) {
  block.bytes = (block.bytes + kAlignment - 1) / kAlignment * kAlignment;
  MutexLock lock(memory_mutex);
  if (!block.is_pinned && block.bytes > FreeOnDevice()) return cudaErrorMemoryAllocation;
  *memory = std::aligned_alloc(kAlignment, block.bytes);
  if (*memory == nullptr) return cudaErrorMemoryAllocation;
  std::memset(*memory, kUnset, block.bytes);
  Blocks().emplace(static_cast<const char*>(*memory), block);
  return cudaSuccess;
}

bool IsWithin(const void* memory, size_t bytes, bool is_pinned) {
  const char* const begin = static_cast<const char*>(memory);
  MutexLock lock(memory_mutex);
  auto found = Blocks().upper_bound(begin);
  if (found == Blocks().begin()) return false;
  --found;
  const auto offset = static_cast<size_t>(begin - found->first);
  const Block& block = found->second;
  return block.is_pinned == is_pinned && offset <= block.bytes && bytes <= block.bytes - offset;
}

}  // namespace

cudaError_t NewOnDevice(void** memory, size_t bytes) { return New(memory, {bytes, false}); }
cudaError_t NewPinned(void** memory, size_t bytes) { return New(memory, {bytes, true}); }

cudaError_t Delete(void* memory) {
  if (memory == nullptr) return cudaSuccess;
  MutexLock lock(memory_mutex);
  if (Blocks().erase(static_cast<const char*>(memory)) == 0) return cudaErrorInvalidValue;
  std::free(memory);
  return cudaSuccess;
}

size_t FreeBytes() {
  MutexLock lock(memory_mutex);
  return FreeOnDevice();
}

bool IsOnDevice(const void* memory, size_t bytes) { return IsWithin(memory, bytes, false); }
bool IsPinned(const void* memory, size_t bytes) { return IsWithin(memory, bytes, true); }

}  // namespace slipstream::simulated
