#include "server/data_plane/shared_memory_use.h"

#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/memory/large_pages.h"

namespace slipstream {

bool SharedMemoryUse::Keep(uint64_t bytes) {
  // Larger arenas lie on large pages wherever the system has some, and those are soon mapped again.
  if (bytes >= kLargePagesBytesMin) return false;
  MutexLock lock(mutex_);
  if (bytes > kKeptBytesMax - kept_bytes_) return false;
  kept_bytes_ += bytes;
  return true;
}

void SharedMemoryUse::GiveBack(uint64_t bytes) {
  MutexLock lock(mutex_);
  PS_CHECK(bytes <= kept_bytes_);
  kept_bytes_ -= bytes;
}

void SharedMemoryUse::Pin(const void* reader, Weights weights, absl::Time until) {
  Pinned pinned{std::move(weights), until};  // Frees the old weights after the lock.
  MutexLock lock(mutex_);
  std::swap(pins_[reader], pinned);
}

void SharedMemoryUse::Release(const void* reader) {
  std::map<const void*, Pinned>::node_type released;  // Freed after the lock.
  MutexLock lock(mutex_);
  released = pins_.extract(reader);
}

void SharedMemoryUse::Expire(absl::Time now) {
  std::vector<Pinned> expired;  // Freed after the lock.
  MutexLock lock(mutex_);
  for (auto pin = pins_.begin(); pin != pins_.end();) {
    if (pin->second.until > now) {
      ++pin;
    } else {
      expired.push_back(std::move(pin->second));
      pin = pins_.erase(pin);
    }
  }
}

size_t SharedMemoryUse::pinned() const {
  MutexLock lock(mutex_);
  return pins_.size();
}

}  // namespace slipstream
