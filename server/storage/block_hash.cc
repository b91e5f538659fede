#include "server/storage/block_hash.h"

#include <xxhash.h>

#include "common/base/check.h"

namespace slipstream {

BlockHash HashOf(std::span<const std::byte> bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {.high = hash.high64, .low = hash.low64};
}

BlockHasher::BlockHasher() : state_(XXH3_createState()) {
  PS_CHECK(state_ != nullptr);
  XXH3_128bits_reset(state_.get());
}

void BlockHasher::Add(std::span<const std::byte> bytes) {
  XXH3_128bits_update(state_.get(), bytes.data(), bytes.size());
}

BlockHash BlockHasher::Finish() {
  const XXH128_hash_t hash = XXH3_128bits_digest(state_.get());
  XXH3_128bits_reset(state_.get());
  return {.high = hash.high64, .low = hash.low64};
}

void BlockHasher::StateEnd::operator()(XXH3_state_s* state) const { XXH3_freeState(state); }

}  // namespace slipstream
