#ifndef SLIPSTREAM_COMMON_BASE_UTF8_H_
#define SLIPSTREAM_COMMON_BASE_UTF8_H_

#include <utf8cpp/utf8.h>

#include <cstddef>
#include <optional>
#include <string_view>

namespace slipstream {

/// Returns the first `bytes_max` bytes of `text`, or fewer so that the last character is whole if
/// `text` is UTF-8.
inline std::string_view CutUtf8(std::string_view text, size_t bytes_max) {
  if (text.size() <= bytes_max) return text;
  const auto continues = [](char byte) { return (byte & 0xC0) == 0x80; };
  size_t keep = bytes_max;
  while (keep > 0 && continues(text[keep])) --keep;
  return text.substr(0, keep);
}

/// Returns the position of the first byte that belongs to no character; nothing if all of `text` is
/// UTF-8 by RFC 3629.
inline std::optional<size_t> FirstNotUtf8(std::string_view text) {
  const size_t at = utf8::find_invalid(text);
  return at == std::string_view::npos ? std::nullopt : std::optional<size_t>(at);
}

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_BASE_UTF8_H_
