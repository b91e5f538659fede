#ifndef SLIPSTREAM_COMMON_KERNELS_CHUNK_HASH_VARIANTS_H_
#define SLIPSTREAM_COMMON_KERNELS_CHUNK_HASH_VARIANTS_H_

#include "common/kernels/chunk_hash.h"

// clang cannot choose an instruction set for the rest of a file, so it gets the plain variant
// alone.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define SLIPSTREAM_HASH_HAS_VARIANTS 1
#else
#define SLIPSTREAM_HASH_HAS_VARIANTS 0
#endif

namespace slipstream {

extern const ChunkHash::Variant kAvx512Hash;
extern const ChunkHash::Variant kAvx2Hash;

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_KERNELS_CHUNK_HASH_VARIANTS_H_
