#include "common/kernels/streamed_stores.h"

#include <algorithm>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace slipstream {

#if defined(__SSE2__)

void StreamValues(const void* from, float* to, size_t count) {
  const auto* const values = static_cast<const std::byte*>(from);
  const auto load = [values](size_t i) {
    return _mm_loadu_ps(reinterpret_cast<const float*>(values + i * sizeof(float)));
  };
  // Copy up to the begin of a line first: a line leaves in one piece only if it is written in one
  // go.
  const size_t past = reinterpret_cast<uintptr_t>(to) / sizeof(float) % kLineValues;
  const size_t head = std::min(count, (kLineValues - past) % kLineValues);
  std::memcpy(to, from, head * sizeof(float));
  size_t i = head;
  for (; i + kLineValues <= count; i += kLineValues) {
    const __m128 a = load(i);
    const __m128 b = load(i + 4);
    const __m128 c = load(i + 8);
    const __m128 d = load(i + 12);
    _mm_stream_ps(to + i, a);
    _mm_stream_ps(to + i + 4, b);
    _mm_stream_ps(to + i + 8, c);
    _mm_stream_ps(to + i + 12, d);
  }
  std::memcpy(to + i, values + i * sizeof(float), (count - i) * sizeof(float));
}

void FinishStreaming() { _mm_sfence(); }

#else

void StreamValues(const void* from, float* to, size_t count) {
  std::memcpy(to, from, count * sizeof(float));
}

void FinishStreaming() {}

#endif

}  // namespace slipstream
