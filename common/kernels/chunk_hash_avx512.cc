#include "common/kernels/chunk_hash_variants.h"

#if SLIPSTREAM_HASH_HAS_VARIANTS
#pragma GCC target("avx512f")
#define SLIPSTREAM_HASH_NAMESPACE hash_avx512
#include "common/kernels/chunk_hash.inc"
#endif

namespace slipstream {

#if SLIPSTREAM_HASH_HAS_VARIANTS
const ChunkHash::Variant kAvx512Hash = {"avx512",
                                        [] { return __builtin_cpu_supports("avx512f") != 0; },
                                        hash_avx512::Begin, hash_avx512::Add, hash_avx512::Finish};
#else
const ChunkHash::Variant kAvx512Hash = {"avx512", [] { return false; }, nullptr, nullptr, nullptr};
#endif

}  // namespace slipstream
