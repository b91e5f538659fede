#ifndef SLIPSTREAM_COMMON_BASE_UTF8_H_
#define SLIPSTREAM_COMMON_BASE_UTF8_H_

#include <utf8cpp/utf8.h>

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

/// Where the first byte lies that belongs to no character; nothing if all of `text` is UTF-8, as
/// RFC 3629 has it.
inline std::optional<size_t> FirstNotUtf8(std::string_view text) {
  const size_t at = utf8::find_invalid(text);
  return at == std::string_view::npos ? std::nullopt : std::optional<size_t>(at);
}

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_BASE_UTF8_H_
