#include "common/kernels/chunk_hash_variants.h"

#if SLIPSTREAM_HASH_HAS_VARIANTS
#pragma GCC target("avx2")
#define SLIPSTREAM_HASH_NAMESPACE hash_avx2
#include "common/kernels/chunk_hash.inc"
#endif

namespace slipstream {

#if SLIPSTREAM_HASH_HAS_VARIANTS
const ChunkHash::Variant kAvx2Hash = {"avx2", [] { return __builtin_cpu_supports("avx2") != 0; },
                                      hash_avx2::Begin, hash_avx2::Add, hash_avx2::Finish};
#else
const ChunkHash::Variant kAvx2Hash = {"avx2", [] { return false; }, nullptr, nullptr, nullptr};
#endif

}  // namespace slipstream
