#ifndef SLIPSTREAM_COMMON_BASE_PRINTABLE_H_
#define SLIPSTREAM_COMMON_BASE_PRINTABLE_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "common/base/utf8.h"

namespace slipstream {

/// What a peer or a file said, fit for one line of a terminal: white space is a blank; other
/// control characters, with which a stranger could rewrite the screen, and bytes that are not UTF-8
/// are U+FFFD.
inline std::string Printable(std::string_view text) {
  std::string printable;
  printable.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const size_t bytes = FirstCharacterBytes(text.substr(at));
    const auto first = static_cast<unsigned char>(text[at]);
    const bool is_blank = first == '\n' || first == '\r' || first == '\t';
    // C0 and DEL; C1, which UTF-8 writes as C2 80 to C2 9F.
    const bool is_c0 = first < 0x20 || first == 0x7F;
    const bool is_c1 =
        bytes == 2 && first == 0xC2 && static_cast<unsigned char>(text[at + 1]) < 0xA0;
    if (is_blank) {
      printable += ' ';
    } else if (bytes == 0 || is_c0 || is_c1) {
      printable += "\uFFFD";
    } else {
      printable += text.substr(at, bytes);
    }
    at += bytes == 0 ? 1 : bytes;
  }
  return printable;
}

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_BASE_PRINTABLE_H_
