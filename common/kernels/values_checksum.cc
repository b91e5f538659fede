#include "common/kernels/values_checksum.h"

#include "common/kernels/chunk_hash.h"

namespace slipstream {

uint64_t ValuesChecksum(std::span<const float> values) {
  ChunkHash hash;
  hash.Begin(0);
  hash.Add({reinterpret_cast<const std::byte*>(values.data()), values.size_bytes()});
  return hash.Finish();
}

}  // namespace slipstream
