#ifndef SLIPSTREAM_COMMON_LOCAL_SHARED_VALUES_H_
#define SLIPSTREAM_COMMON_LOCAL_SHARED_VALUES_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "common/local/shared_memory.h"

namespace slipstream {

/// What lies in shared memory that holds weights: a page with the generation of the values, then
/// the values.
///
/// The generation changes before values of another version are written, which normally waits until
/// every reader has let go. A reader that was not waited for, because its time was up, sees by it
/// that what it copied is worth nothing: generation first, copy, generation again, as of a seqlock.
struct SharedValuesLayout {
  static constexpr size_t kValuesBegin = 4096;

  static size_t Bytes(size_t values) { return kValuesBegin + values * sizeof(float); }

  static float* Values(const SharedMapping& mapping) {
    return reinterpret_cast<float*>(mapping.data() + kValuesBegin);
  }

  /// For the maker. Orders what it writes from now on behind the new generation.
  static uint64_t NextGeneration(const SharedMapping& mapping) {
    auto* const generation = reinterpret_cast<std::atomic<uint64_t>*>(mapping.data());
    const uint64_t next = generation->fetch_add(1, std::memory_order_acq_rel) + 1;
    Fence();
    return next;
  }

  /// For readers. Orders what they have read before it.
  static uint64_t Generation(const SharedMapping& mapping) {
    Fence();
    const auto* const generation = reinterpret_cast<const std::atomic<uint64_t>*>(mapping.data());
    return generation->load(std::memory_order_relaxed);
  }

  static_assert(std::atomic<uint64_t>::is_always_lock_free);

 private:
  static void Fence() {
#if defined(__SANITIZE_THREAD__)
    std::atomic_signal_fence(std::memory_order_acq_rel);  // It knows no other, and is for x86.
#else
    std::atomic_thread_fence(std::memory_order_acq_rel);
#endif
  }
};

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_LOCAL_SHARED_VALUES_H_
