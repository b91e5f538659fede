#ifdef __x86_64__

#include <immintrin.h>

#define SLIPSTREAM_TARGET __attribute__((target("avx2,fma")))
#define SLIPSTREAM_INLINE SLIPSTREAM_TARGET __attribute__((always_inline)) inline

#include "worker/compute/cpu/innermost_twins.h"

namespace slipstream {
namespace {

using Vector = __m256;
using Places = __m256i;  // Positions in the pool window of each image's maximum.

// Each lane has all bits set or none.
struct Mask {
  __m256 bits;
};

constexpr size_t kLanes = 8;

// A tile of 6 channels × 2 vectors uses 12 of the 16 registers as accumulators; a tile of 2
// channels × 5 taps of a weight gradient uses 10.
constexpr int kTileVectors = 2;
constexpr int kTileChannels = 6;
constexpr int kGradientChannels = 2;

SLIPSTREAM_INLINE Vector Zero() { return _mm256_setzero_ps(); }
SLIPSTREAM_INLINE Vector Load(const float* values) { return _mm256_load_ps(values); }
SLIPSTREAM_INLINE void Store(float* values, Vector v) { _mm256_store_ps(values, v); }
SLIPSTREAM_INLINE Vector Broadcast(float value) { return _mm256_set1_ps(value); }
SLIPSTREAM_INLINE Vector Add(Vector a, Vector b) { return _mm256_add_ps(a, b); }
SLIPSTREAM_INLINE Vector MultiplyAdd(Vector a, Vector b, Vector sum) {
  return _mm256_fmadd_ps(a, b, sum);
}
SLIPSTREAM_INLINE Mask Greater(Vector a, Vector b) { return {_mm256_cmp_ps(a, b, _CMP_GT_OQ)}; }
SLIPSTREAM_INLINE Vector Select(Mask mask, Vector yes, Vector no) {
  return _mm256_blendv_ps(no, yes, mask.bits);
}
SLIPSTREAM_INLINE float Sum(Vector v) {
  const __m128 fours = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  const __m128 twos = _mm_add_ps(fours, _mm_movehl_ps(fours, fours));
  return _mm_cvtss_f32(_mm_add_ss(twos, _mm_shuffle_ps(twos, twos, 1)));
}

SLIPSTREAM_INLINE Places Place(int place) { return _mm256_set1_epi32(place); }
SLIPSTREAM_INLINE Places Select(Mask mask, Places yes, Places no) {
  return _mm256_blendv_epi8(no, yes, _mm256_castps_si256(mask.bits));
}
SLIPSTREAM_INLINE Mask Equal(Places a, Places b) {
  return {_mm256_castsi256_ps(_mm256_cmpeq_epi32(a, b))};
}
SLIPSTREAM_INLINE Places LoadPlaces(const uint8_t* places) {
  return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(places)));
}
SLIPSTREAM_INLINE void StorePlaces(uint8_t* places, Places v) {
  const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
  _mm_storel_epi64(reinterpret_cast<__m128i*>(places), _mm_packus_epi16(words, words));
}

}  // namespace
}  // namespace slipstream

#include "worker/compute/cpu/innermost_kernels.inc"

namespace slipstream {

const InnermostKernels kInnermostAvx2 = {
    .name = "avx2",
    .lanes = kLanes,
    .blocked_inputs = 8,
    .forward = Forward,
    .spread_gradient = SpreadGradient,
    .weight_gradient = WeightGradient,
    .input_gradient = InputGradient,
};

}  // namespace slipstream

#endif  // __x86_64__
