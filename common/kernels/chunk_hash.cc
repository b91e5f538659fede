#include "common/kernels/chunk_hash.h"

#include "common/kernels/chunk_hash_variants.h"

#define SLIPSTREAM_HASH_NAMESPACE hash_plain
#include "common/kernels/chunk_hash.inc"

namespace slipstream {
namespace {

constexpr ChunkHash::Variant kPlainHash = {"plain", [] { return true; }, hash_plain::Begin,
                                           hash_plain::Add, hash_plain::Finish};
constexpr const ChunkHash::Variant* kAll[ChunkHash::kVariants] = {&kAvx512Hash, &kAvx2Hash,
                                                                  &kPlainHash};

const ChunkHash::Variant* Fastest() {
  for (const ChunkHash::Variant* variant : kAll) {
    if (variant->is_supported()) return variant;
  }
  return &kPlainHash;
}

}  // namespace

const ChunkHash::Variant* const* ChunkHash::AllVariants() { return kAll; }

ChunkHash::ChunkHash() {
  static const Variant* const kFastest = Fastest();
  variant_ = kFastest;
}

void ChunkHash::Begin(uint64_t seed) { variant_->begin(state_, seed); }

void ChunkHash::Add(ByteSegment bytes) { variant_->add(state_, bytes.data(), bytes.size()); }

uint64_t ChunkHash::Finish() const { return variant_->finish(state_); }

}  // namespace slipstream
