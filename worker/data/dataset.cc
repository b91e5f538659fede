#include "worker/data/dataset.h"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <memory>

namespace slipstream {
namespace {

// A piece of this size is hashed in some milliseconds.
constexpr size_t kHashedBytes = size_t{64} << 20;

struct FreeState {
  void operator()(XXH64_state_t* state) const { XXH64_freeState(state); }
};

/// Returns the hash of `bytes`, seeded with the hash of the bytes before; nothing if `goes_on`
/// returns false.
std::optional<uint64_t> Hash(std::span<const std::byte> bytes, uint64_t seed,
                             const std::function<bool()>& goes_on) {
  const std::unique_ptr<XXH64_state_t, FreeState> state(XXH64_createState());
  XXH64_reset(state.get(), seed);
  while (!bytes.empty()) {
    if (!goes_on()) return std::nullopt;
    const std::span<const std::byte> piece = bytes.first(std::min(bytes.size(), kHashedBytes));
    XXH64_update(state.get(), piece.data(), piece.size());
    bytes = bytes.subspan(piece.size());
  }
  return XXH64_digest(state.get());
}

}  // namespace

uint64_t Dataset::Fingerprint() const {
  return *Fingerprint([] { return true; });
}

std::optional<uint64_t> Dataset::Fingerprint(const std::function<bool()>& goes_on) const {
  const std::array<uint64_t, 6> header = {shape.channels, shape.height,  shape.width,
                                          outputs,        labels.size(), targets.size()};
  const std::array<std::span<const std::byte>, 4> parts = {
      std::as_bytes(std::span(header)), std::as_bytes(std::span(labels)),
      std::as_bytes(std::span(targets)), std::as_bytes(std::span(examples))};
  std::optional<uint64_t> hash = 0;  // The hash of each part seeds the next.
  for (const std::span<const std::byte> part : parts) {
    hash = Hash(part, *hash, goes_on);
    if (!hash.has_value()) return std::nullopt;
  }
  return hash;
}

}  // namespace slipstream
