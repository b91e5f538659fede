#include "common/kernels/half_decode.h"

#include <bit>
#include <cstddef>
#include <cstdint>

#include "common/base/check.h"
#include "common/kernels/float_runs.h"
#include "common/kernels/half_values.h"

#ifdef SLIPSTREAM_F16C
#include <immintrin.h>
#endif

namespace slipstream {
namespace {

/// A value that may start at any byte.
using UnalignedHalf __attribute__((aligned(1), may_alias)) = uint16_t;

/// Results are stored as words, so that a signalling NaN keeps its bits: some registers change it
/// when a float is moved through them.
using Word __attribute__((may_alias)) = uint32_t;

SLIPSTREAM_CPU_DISPATCH
void Bf16Run(const UnalignedHalf* __restrict values, Word* __restrict out, size_t count) {
  for (size_t i = 0; i < count; ++i) out[i] = BitsOfBf16(values[i]);
}

SLIPSTREAM_CPU_DISPATCH
void Fp16Run(const UnalignedHalf* __restrict values, Word* __restrict out, size_t count) {
  for (size_t i = 0; i < count; ++i) out[i] = BitsOfFp16(values[i]);
}

#ifdef SLIPSTREAM_F16C

__attribute__((target("avx,f16c"))) void Fp16RunF16c(const UnalignedHalf* values, Word* out,
                                                     size_t count) {
  size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i_u*>(values + i));
    _mm256_storeu_ps(reinterpret_cast<float*>(out + i), _mm256_cvtph_ps(halves));
  }
  for (; i < count; ++i) out[i] = BitsOfFp16(values[i]);
}

#endif  // SLIPSTREAM_F16C

using Run = void (*)(const UnalignedHalf* values, Word* out, size_t count);

/// Calls `run` for every stretch of whole values.
void Decode(const Segments& segments, std::span<float> out, Run run) {
  PS_CHECK(TotalBytes(segments) == out.size() * sizeof(uint16_t));
  ForEachRun<sizeof(uint16_t)>(segments,
                               [out, run](size_t position, const std::byte* values, size_t count) {
                                 run(reinterpret_cast<const UnalignedHalf*>(values),
                                     reinterpret_cast<Word*>(out.data() + position), count);
                               });
}

}  // namespace

void DecodeBf16(const Segments& segments, std::span<float> out) { Decode(segments, out, Bf16Run); }

void DecodeFp16(const Segments& segments, std::span<float> out) {
#ifdef SLIPSTREAM_F16C
  if (__builtin_cpu_supports("f16c")) return Decode(segments, out, Fp16RunF16c);
#endif
  DecodeFp16Plain(segments, out);
}

void DecodeFp16Plain(const Segments& segments, std::span<float> out) {
  Decode(segments, out, Fp16Run);
}

}  // namespace slipstream
