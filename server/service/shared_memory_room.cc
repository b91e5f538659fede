#include "server/service/shared_memory_room.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "common/base/check.h"

namespace slipstream {

uint64_t SharedMemoryRoom::GrantWindow(uint64_t asked) {
  constexpr uint64_t kShare = 4;  // Of what is left, the most that one worker gets.
  constexpr uint64_t kSmallest = uint64_t{1} << 20;
  constexpr uint64_t kPieces = 4;  // What is asked for holds so many; one has to fit.
  MutexLock lock(mutex_);
  const uint64_t left = kWindowBytesTotal - window_bytes_;
  const uint64_t most = std::min({kWindowBytesMax, left, std::max(left / kShare, kSmallest)});
  const uint64_t granted = std::min(asked, most);
  if (granted < asked / kPieces) return 0;
  window_bytes_ += granted;
  return granted;
}

void SharedMemoryRoom::ReturnWindow(uint64_t granted) {
  MutexLock lock(mutex_);
  PS_CHECK(granted <= window_bytes_);
  window_bytes_ -= granted;
}

void SharedMemoryRoom::Pin(const void* reader, Weights weights, absl::Time until) {
  Pinned pinned{std::move(weights), until};  // Takes what was there before out of the lock.
  MutexLock lock(mutex_);
  std::swap(pins_[reader], pinned);
}

void SharedMemoryRoom::Release(const void* reader) {
  std::map<const void*, Pinned>::node_type released;  // Freed after the lock.
  MutexLock lock(mutex_);
  released = pins_.extract(reader);
}

void SharedMemoryRoom::Expire(absl::Time now) {
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

size_t SharedMemoryRoom::pinned() const {
  MutexLock lock(mutex_);
  return pins_.size();
}

}  // namespace slipstream
