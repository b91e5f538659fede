#ifdef __x86_64__

#include <immintrin.h>

#define SLIPSTREAM_TARGET __attribute__((target("avx512f,fma")))
#define SLIPSTREAM_INLINE SLIPSTREAM_TARGET __attribute__((always_inline)) inline

#include "worker/compute/cpu/innermost_twins.h"

namespace slipstream {
namespace {

using Vector = __m512;
using Mask = __mmask16;
using Places = __m512i;  // Positions in the pool window of each image's maximum.

constexpr size_t kLanes = 16;

// A tile of 6 channels × 4 vectors uses 24 of the 32 registers as accumulators; a tile of 4
// channels × 5 taps of a weight gradient uses 20.
constexpr int kTileVectors = 4;
constexpr int kTileChannels = 6;
constexpr int kGradientChannels = 4;

SLIPSTREAM_INLINE Vector Zero() { return _mm512_setzero_ps(); }
SLIPSTREAM_INLINE Vector Load(const float* values) { return _mm512_load_ps(values); }
SLIPSTREAM_INLINE void Store(float* values, Vector v) { _mm512_store_ps(values, v); }
SLIPSTREAM_INLINE Vector Broadcast(float value) { return _mm512_set1_ps(value); }
SLIPSTREAM_INLINE Vector Add(Vector a, Vector b) { return _mm512_add_ps(a, b); }
SLIPSTREAM_INLINE Vector MultiplyAdd(Vector a, Vector b, Vector sum) {
  return _mm512_fmadd_ps(a, b, sum);
}
SLIPSTREAM_INLINE Mask Greater(Vector a, Vector b) { return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ); }
SLIPSTREAM_INLINE Vector Select(Mask mask, Vector yes, Vector no) {
  return _mm512_mask_mov_ps(no, mask, yes);
}
// The masked forms below are equivalent to the plain ones; for those g++ 12 warns of uninitialised
// values.
SLIPSTREAM_INLINE float Sum(Vector v) {
  const __m512d pairs = _mm512_castps_pd(v);
  const __m256 low = _mm256_castpd_ps(_mm512_maskz_extractf64x4_pd(0xf, pairs, 0));
  const __m256 high = _mm256_castpd_ps(_mm512_maskz_extractf64x4_pd(0xf, pairs, 1));
  const __m256 eights = _mm256_add_ps(low, high);
  const __m128 fours = _mm_add_ps(_mm256_castps256_ps128(eights), _mm256_extractf128_ps(eights, 1));
  const __m128 twos = _mm_add_ps(fours, _mm_movehl_ps(fours, fours));
  return _mm_cvtss_f32(_mm_add_ss(twos, _mm_shuffle_ps(twos, twos, 1)));
}

SLIPSTREAM_INLINE Places Place(int place) { return _mm512_set1_epi32(place); }
SLIPSTREAM_INLINE Places Select(Mask mask, Places yes, Places no) {
  return _mm512_mask_mov_epi32(no, mask, yes);
}
SLIPSTREAM_INLINE Mask Equal(Places a, Places b) { return _mm512_cmpeq_epi32_mask(a, b); }
SLIPSTREAM_INLINE Places LoadPlaces(const uint8_t* places) {
  return _mm512_maskz_cvtepu8_epi32(0xffff,
                                    _mm_load_si128(reinterpret_cast<const __m128i*>(places)));
}
SLIPSTREAM_INLINE void StorePlaces(uint8_t* places, Places v) {
  _mm_store_si128(reinterpret_cast<__m128i*>(places), _mm512_maskz_cvtepi32_epi8(0xffff, v));
}

}  // namespace
}  // namespace slipstream

#include "worker/compute/cpu/innermost_kernels.inc"

namespace slipstream {

const InnermostKernels kInnermostAvx512 = {
    .name = "avx512",
    .lanes = kLanes,
    .blocked_inputs = 1,
    .forward = Forward,
    .spread_gradient = SpreadGradient,
    .weight_gradient = WeightGradient,
    .input_gradient = InputGradient,
};

}  // namespace slipstream

#endif  // __x86_64__
