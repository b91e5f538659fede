#ifndef SLIPSTREAM_COMMON_LOCAL_SHARED_VALUES_H_
#define SLIPSTREAM_COMMON_LOCAL_SHARED_VALUES_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "common/local/shared_memory.h"

namespace slipstream {

/// The layout of shared memory that holds weights: a page with the filling of the values, then
/// the values.
///
/// The filling changes before values of another version are written, which normally happens once
/// every reader has released the buffer. If a reader took too long, nobody waits for it; it then
/// sees by the filling that its copy is worthless. A reader loads the filling, copies, and
/// loads the filling again, as with a seqlock.
struct SharedValuesLayout {
  static constexpr size_t kValuesBegin = 4096;

  static size_t Bytes(size_t values) { return kValuesBegin + values * sizeof(float); }

  static float* Values(const SharedMapping& mapping) {
    return reinterpret_cast<float*>(mapping.data() + kValuesBegin);
  }

  /// Begins a new filling and returns it. Only the maker calls it: its later writes are ordered
  /// behind the new filling.
  static uint64_t NextFilling(const SharedMapping& mapping) {
    auto* const filling = reinterpret_cast<std::atomic<uint64_t>*>(mapping.data());
    const uint64_t next = filling->fetch_add(1, std::memory_order_acq_rel) + 1;
    Fence();
    return next;
  }

  /// Returns the filling. Readers call it: their earlier reads are ordered before it.
  static uint64_t Filling(const SharedMapping& mapping) {
    Fence();
    const auto* const filling = reinterpret_cast<const std::atomic<uint64_t>*>(mapping.data());
    return filling->load(std::memory_order_relaxed);
  }

  static_assert(std::atomic<uint64_t>::is_always_lock_free);

 private:
  static void Fence() {
#if defined(__SANITIZE_THREAD__)
    // ThreadSanitizer knows no other; it runs on x86.
    std::atomic_signal_fence(std::memory_order_acq_rel);
#else
    std::atomic_thread_fence(std::memory_order_acq_rel);
#endif
  }
};

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_LOCAL_SHARED_VALUES_H_
