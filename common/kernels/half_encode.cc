#include "common/kernels/half_encode.h"

#include <bit>
#include <cstddef>

#include "common/base/check.h"
#include "common/kernels/float_runs.h"
#include "common/kernels/half_values.h"

// Where kernels are compiled for several instruction sets, see float_runs.h, these are used, too.
// g++ 12 makes vectors of the plain loops, but narrows so clumsily that they take 3 (bf16) and 7
// (fp16) times as long.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(SLIPSTREAM_SANITIZER)
#define SLIPSTREAM_HAS_INTRINSICS
#include <immintrin.h>
#endif

namespace slipstream {
namespace {

SLIPSTREAM_CPU_DISPATCH
void EncodeBf16Plain(const float* __restrict values, uint16_t* __restrict out, size_t count) {
  for (size_t i = 0; i < count; ++i) out[i] = Bf16OfBits(std::bit_cast<uint32_t>(values[i]));
}

SLIPSTREAM_CPU_DISPATCH
void EncodeFp16Plain(const float* __restrict values, uint16_t* __restrict out, size_t count) {
  for (size_t i = 0; i < count; ++i) out[i] = Fp16OfBits(std::bit_cast<uint32_t>(values[i]));
}

#ifdef SLIPSTREAM_HAS_INTRINSICS

// g++ 12 warns, wrongly, of what its own intrinsics leave unset.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

__attribute__((target("avx512f"))) void EncodeBf16Avx512(const float* values, uint16_t* out,
                                                         size_t count) {
  const __m512i kOne = _mm512_set1_epi32(1);
  const __m512i kLessThanHalf = _mm512_set1_epi32(0x7fff);
  const __m512i kMagnitude = _mm512_set1_epi32(half_values::kMagnitude);
  const __m512i kInfinity = _mm512_set1_epi32(half_values::kInfinity);
  const __m512i kQuiet = _mm512_set1_epi32(0x40);
  size_t i = 0;
  for (; i + 16 <= count; i += 16) {
    const __m512i bits = _mm512_loadu_si512(values + i);
    const __m512i upper = _mm512_srli_epi32(bits, 16);
    const __m512i odd = _mm512_and_epi32(upper, kOne);
    const __m512i sum = _mm512_add_epi32(_mm512_add_epi32(bits, kLessThanHalf), odd);
    const __mmask16 is_nan = _mm512_cmpgt_epi32_mask(_mm512_and_epi32(bits, kMagnitude), kInfinity);
    const __m512i rounded = _mm512_mask_or_epi32(_mm512_srli_epi32(sum, 16), is_nan, upper, kQuiet);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i), _mm512_cvtepi32_epi16(rounded));
  }
  for (; i < count; ++i) out[i] = Bf16OfBits(std::bit_cast<uint32_t>(values[i]));
}

__attribute__((target("avx512f"))) void EncodeFp16Avx512(const float* values, uint16_t* out,
                                                         size_t count) {
  size_t i = 0;
  for (; i + 16 <= count; i += 16) {
    const __m256i halves = _mm512_cvtps_ph(_mm512_loadu_ps(values + i), _MM_FROUND_TO_NEAREST_INT);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i), halves);
  }
  for (; i < count; ++i) out[i] = Fp16OfBits(std::bit_cast<uint32_t>(values[i]));
}

__attribute__((target("avx,f16c"))) void EncodeFp16F16c(const float* values, uint16_t* out,
                                                        size_t count) {
  size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m128i halves = _mm256_cvtps_ph(_mm256_loadu_ps(values + i), _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i), halves);
  }
  for (; i < count; ++i) out[i] = Fp16OfBits(std::bit_cast<uint32_t>(values[i]));
}

#pragma GCC diagnostic pop

#endif  // SLIPSTREAM_HAS_INTRINSICS

void Encode(const HalfEncoder& encoder, std::span<const float> values, std::span<uint16_t> out) {
  PS_CHECK(values.size() == out.size());
  encoder.encode(values.data(), out.data(), values.size());
}

}  // namespace

std::vector<HalfEncoder> Bf16Encoders() {
  std::vector<HalfEncoder> encoders;
#ifdef SLIPSTREAM_HAS_INTRINSICS
  if (__builtin_cpu_supports("avx512f")) encoders.push_back({"avx512f", EncodeBf16Avx512});
#endif
  encoders.push_back({"plain", EncodeBf16Plain});
  return encoders;
}

std::vector<HalfEncoder> Fp16Encoders() {
  std::vector<HalfEncoder> encoders;
#ifdef SLIPSTREAM_HAS_INTRINSICS
  if (__builtin_cpu_supports("avx512f")) encoders.push_back({"avx512f", EncodeFp16Avx512});
  if (__builtin_cpu_supports("f16c")) encoders.push_back({"f16c", EncodeFp16F16c});
#endif
  encoders.push_back({"plain", EncodeFp16Plain});
  return encoders;
}

void EncodeBf16(std::span<const float> values, std::span<uint16_t> out) {
  static const HalfEncoder kFastest = Bf16Encoders().front();
  Encode(kFastest, values, out);
}

void EncodeFp16(std::span<const float> values, std::span<uint16_t> out) {
  static const HalfEncoder kFastest = Fp16Encoders().front();
  Encode(kFastest, values, out);
}

}  // namespace slipstream
