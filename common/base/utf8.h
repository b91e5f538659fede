#ifndef SLIPSTREAM_COMMON_BASE_UTF8_H_
#define SLIPSTREAM_COMMON_BASE_UTF8_H_

#include <cstddef>
#include <optional>
#include <string_view>

namespace slipstream {

/// The beginning of `text`, at most `bytes_max` bytes of it, that ends with a whole character if
/// `text` is UTF-8.
inline std::string_view CutUtf8(std::string_view text, size_t bytes_max) {
  if (text.size() <= bytes_max) return text;
  const auto continues = [](char byte) { return (byte & 0xC0) == 0x80; };
  size_t keep = bytes_max;
  while (keep > 0 && continues(text[keep])) --keep;
  return text.substr(0, keep);
}

/// How many bytes the character has that `text` begins with; 0 if it begins with none of UTF-8 as
/// RFC 3629 has it. REQUIRES: `text` is not empty.
inline size_t FirstCharacterBytes(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  if (first < 0xC2 || first > 0xF4) return 0;
  const size_t bytes = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  if (text.size() < bytes) return 0;
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  // Written with more bytes than needed, halves of UTF-16's pairs, beyond Unicode.
  const unsigned char second = byte(1);
  const bool is_overlong = (first == 0xE0 && second < 0xA0) || (first == 0xF0 && second < 0x90);
  const bool is_no_character = (first == 0xED && second > 0x9F) || (first == 0xF4 && second > 0x8F);
  return is_overlong || is_no_character ? 0 : bytes;
}

/// Where the first byte lies that belongs to no character; nothing if all of `text` is UTF-8.
inline std::optional<size_t> FirstNotUtf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const size_t bytes = FirstCharacterBytes(text.substr(at));
    if (bytes == 0) return at;
    at += bytes;
  }
  return std::nullopt;
}

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_BASE_UTF8_H_
