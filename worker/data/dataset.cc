#include "worker/data/dataset.h"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <memory>

namespace slipstream {
namespace {

// Pieces of values that are made fp32, and hashed, within a processor's caches.
constexpr size_t kHashedValues = size_t{1} << 14;

struct FreeState {
  void operator()(XXH64_state_t* state) const { XXH64_freeState(state); }
};

/// Returns the hash of the examples' values as fp32; nothing if `goes_on` returns false.
std::optional<uint64_t> Hash(const ExampleValues& examples, uint64_t seed,
                             const std::function<bool()>& goes_on) {
  const std::unique_ptr<XXH64_state_t, FreeState> state(XXH64_createState());
  XXH64_reset(state.get(), seed);
  std::vector<float> values(std::min(examples.size(), kHashedValues));
  for (size_t begin = 0; begin < examples.size(); begin += values.size()) {
    if (!goes_on()) return std::nullopt;
    values.resize(std::min(values.size(), examples.size() - begin));
    examples.Read(begin, values);
    XXH64_update(state.get(), values.data(), values.size() * sizeof(float));
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
  uint64_t hash = 0;  // The hash of each part seeds the next.
  const std::array<std::span<const std::byte>, 3> parts = {std::as_bytes(std::span(header)),
                                                           std::as_bytes(std::span(labels)),
                                                           std::as_bytes(std::span(targets))};
  for (const std::span<const std::byte> part : parts) {
    hash = XXH64(part.data(), part.size(), hash);
  }
  return Hash(examples, hash, goes_on);
}

}  // namespace slipstream
