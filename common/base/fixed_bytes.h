#ifndef SLIPSTREAM_COMMON_BASE_FIXED_BYTES_H_
#define SLIPSTREAM_COMMON_BASE_FIXED_BYTES_H_

#include <bit>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string>
#include <string_view>

namespace slipstream {

/// Returns numbers as bytes, eight little-endian ones each: for headers whose size must be known
/// before they are read.
inline std::string FixedBytes(std::initializer_list<uint64_t> numbers) {
  static_assert(std::endian::native == std::endian::little);
  std::string bytes(numbers.size() * sizeof(uint64_t), '\0');
  std::memcpy(bytes.data(), numbers.begin(), bytes.size());
  return bytes;
}

/// Reads what FixedBytes has made of so many numbers. Returns false if `bytes` are too few.
inline bool ReadFixedBytes(std::string_view bytes, std::initializer_list<uint64_t*> numbers) {
  if (bytes.size() < numbers.size() * sizeof(uint64_t)) return false;
  for (uint64_t* number : numbers) {
    std::memcpy(number, bytes.data(), sizeof(uint64_t));
    bytes.remove_prefix(sizeof(uint64_t));
  }
  return true;
}

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_BASE_FIXED_BYTES_H_
