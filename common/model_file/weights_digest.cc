#include "common/model_file/weights_digest.h"

#include <openssl/sha.h>

#include <array>
#include <bit>

namespace slipstream {

static_assert(std::endian::native == std::endian::little, "the digest is of little-endian values");

std::string WeightsSha256(std::span<const float> weights) {
  const std::span<const std::byte> bytes = std::as_bytes(weights);
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), digest.data());
  constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  for (const unsigned char byte : digest) {
    hex.push_back(kDigits[byte >> 4]);
    hex.push_back(kDigits[byte & 15]);
  }
  return hex;
}

}  // namespace slipstream
