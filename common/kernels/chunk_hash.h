#ifndef SLIPSTREAM_COMMON_KERNELS_CHUNK_HASH_H_
#define SLIPSTREAM_COMMON_KERNELS_CHUNK_HASH_H_

#include <cstddef>
#include <cstdint>

#include "common/kernels/segments.h"

namespace slipstream {

/// XXH3-64 (https://xxhash.com) of bytes that come in several pieces. Debian's build of the library
/// uses the smallest vectors alone. This class is compiled for larger ones, too, and picks one set
/// at run time: it is twice as fast with AVX-512, and its results are equal with all of them.
///
/// Not thread-safe: one owner.
class ChunkHash {
 public:
  /// Begins a new hash.
  void Begin(uint64_t seed);
  void Add(ByteSegment bytes);

  /// Returns the hash of the bytes added since Begin.
  uint64_t Finish() const;

  /// The functions for one set of vectors; for chunk_hash.cc and tests.
  struct Variant {
    const char* name;
    bool (*is_supported)();
    void (*begin)(void* state, uint64_t seed);
    void (*add)(void* state, const void* bytes, size_t size);
    uint64_t (*finish)(const void* state);
  };
  static constexpr size_t kVariants = 3;

  /// Returns all variants, the fastest first; the last is supported everywhere.
  static const Variant* const* AllVariants();

  explicit ChunkHash(const Variant& variant) : variant_(&variant) {}
  ChunkHash();

 private:
  const Variant* variant_;
  alignas(64) std::byte state_[576] = {};  // Holds an XXH3_state_t.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_KERNELS_CHUNK_HASH_H_
