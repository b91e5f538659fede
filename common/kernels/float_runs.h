#ifndef SLIPSTREAM_COMMON_KERNELS_FLOAT_RUNS_H_
#define SLIPSTREAM_COMMON_KERNELS_FLOAT_RUNS_H_

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>

#include "common/kernels/segments.h"

// Payloads are little-endian and are read in place.
static_assert(std::endian::native == std::endian::little);

/// Compiles a kernel for several instruction sets and picks one at run time. Results are equal on
/// all of them: contraction to fused multiply-add is off. Sanitizers cannot intercept the resolver
/// and clang 14 does not know the attribute; they get the portable code.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(SLIPSTREAM_SANITIZER)
#define SLIPSTREAM_CPU_DISPATCH __attribute__((target_clones("avx512f", "avx2", "default")))
#define SLIPSTREAM_F16C  // The conversion instructions for fp16 are available.
#else
#define SLIPSTREAM_CPU_DISPATCH
#endif

/// Marks a function that is compiled as part of others, for several instruction sets.
#define SLIPSTREAM_INLINE __attribute__((always_inline)) inline

/// Stands before a loop whose passes do not depend on each other, which the compiler cannot see.
#if defined(__GNUC__) && !defined(__clang__)
#define SLIPSTREAM_INDEPENDENT_PASSES _Pragma("GCC ivdep")
#else
#define SLIPSTREAM_INDEPENDENT_PASSES
#endif

namespace slipstream {

/// A value that may start at any byte, as received payloads do.
using UnalignedFloat __attribute__((aligned(1), may_alias)) = float;

/// Calls run(position of the first value, pointer to its first byte, values) for every stretch of
/// whole values of kValueBytes each, in order. A value cut between segments is put together and
/// passed as a run of its own. Bytes at the end that do not fill a value are not passed.
template <size_t kValueBytes, typename Run>
void ForEachRun(const Segments& segments, Run run) {
  size_t position = 0;
  std::byte partial[kValueBytes];
  size_t partial_bytes = 0;
  for (ByteSegment segment : segments) {
    if (partial_bytes > 0) {
      const size_t taken = std::min(kValueBytes - partial_bytes, segment.size());
      std::memcpy(partial + partial_bytes, segment.data(), taken);
      partial_bytes += taken;
      segment = segment.subspan(taken);
      if (partial_bytes < kValueBytes) continue;
      run(position++, partial, size_t{1});
      partial_bytes = 0;
    }
    const size_t values = segment.size() / kValueBytes;
    if (values > 0) run(position, segment.data(), values);
    position += values;
    segment = segment.subspan(values * kValueBytes);
    partial_bytes = segment.size();
    if (partial_bytes > 0) std::memcpy(partial, segment.data(), partial_bytes);
  }
}

/// Calls run(position of the first value, pointer to it, values) for every stretch of fp32 values.
template <typename Run>
void ForEachFloatRun(const Segments& segments, Run run) {
  ForEachRun<sizeof(float)>(segments,
                            [&run](size_t position, const std::byte* values, size_t count) {
                              run(position, reinterpret_cast<const UnalignedFloat*>(values), count);
                            });
}

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_KERNELS_FLOAT_RUNS_H_
