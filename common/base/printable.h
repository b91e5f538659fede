#ifndef SLIPSTREAM_COMMON_BASE_PRINTABLE_H_
#define SLIPSTREAM_COMMON_BASE_PRINTABLE_H_

#include <utf8cpp/utf8.h>

#include <string>
#include <string_view>

namespace slipstream {

/// Returns text from a peer or a file in a form that is safe on one line of a terminal. Tabs and
/// line breaks become blanks. Other control characters, with which a stranger could rewrite the
/// screen, and bytes that are not UTF-8 become U+FFFD.
inline std::string Printable(std::string_view text) {
  constexpr char32_t kReplacement = 0xFFFD;
  std::string printable;
  for (const char32_t character : utf8::utf8to32(utf8::replace_invalid(text))) {
    const bool is_blank = character == '\n' || character == '\r' || character == '\t';
    const bool is_control = character < 0x20 || (character >= 0x7F && character < 0xA0);
    utf8::append(is_blank ? U' ' : is_control ? kReplacement : character, printable);
  }
  return printable;
}

/// Does the same for text of several lines, and keeps their ends. For what a program prints of its
/// own accord, where a text from a peer may have come in: no part of it may move the cursor.
inline std::string PrintableLines(std::string_view text) {
  std::string printable;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    printable += Printable(text.substr(0, end));
    if (end == text.npos) break;
    printable += '\n';
    text.remove_prefix(end + 1);
  }
  return printable;
}

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_BASE_PRINTABLE_H_
