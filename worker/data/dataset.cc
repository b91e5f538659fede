#include "worker/data/dataset.h"

#include <xxhash.h>

#include <array>

namespace slipstream {

uint64_t Dataset::Fingerprint() const {
  const std::array<uint64_t, 6> header = {shape.channels, shape.height,  shape.width,
                                          outputs,        labels.size(), targets.size()};
  // Each part's hash seeds the next.
  uint64_t hash = XXH64(header.data(), sizeof(header), 0);
  hash = XXH64(labels.data(), labels.size() * sizeof(uint32_t), hash);
  hash = XXH64(targets.data(), targets.size() * sizeof(float), hash);
  return XXH64(examples.data(), examples.size() * sizeof(float), hash);
}

}  // namespace slipstream
