#ifndef SLIPSTREAM_COMMON_KERNELS_CHUNK_HASH_H_
#define SLIPSTREAM_COMMON_KERNELS_CHUNK_HASH_H_

#include <cstddef>
#include <cstdint>

#include "common/kernels/segments.h"

namespace slipstream {

/// XXH3-64 (https://xxhash.com) of bytes that come in several pieces. The library as Debian builds
/// it knows the smallest vectors alone; this is compiled for larger ones too, one of which is
/// picked at run time: twice as fast with AVX-512, and equal on all of them.
///
/// Not thread-safe: one owner.
class ChunkHash {
 public:
  /// Begins anew.
  void Begin(uint64_t seed);
  void Add(ByteSegment bytes);

  /// Of what was added since Begin.
  uint64_t Finish() const;

  /// What one set of vectors offers; for chunk_hash.cc and tests.
  struct Variant {
    const char* name;
    bool (*is_supported)();
    void (*begin)(void* state, uint64_t seed);
    void (*add)(void* state, const void* bytes, size_t size);
    uint64_t (*finish)(const void* state);
  };
  static constexpr size_t kVariants = 3;

  /// The fastest first; the last is supported everywhere.
  static const Variant* const* AllVariants();

  explicit ChunkHash(const Variant& variant) : variant_(&variant) {}
  ChunkHash();

 private:
  const Variant* variant_;
  alignas(64) std::byte state_[576] = {};  // An XXH3_state_t.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_KERNELS_CHUNK_HASH_H_
