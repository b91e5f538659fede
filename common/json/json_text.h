#ifndef SLIPSTREAM_COMMON_JSON_JSON_TEXT_H_
#define SLIPSTREAM_COMMON_JSON_JSON_TEXT_H_

#include <cstddef>
#include <string>

namespace slipstream {

/// Functions that print nlohmann's JSON as text; all of the project's JSON is written by them.
/// Bytes that are not UTF-8 become U+FFFD. dump() by default throws on such text, which a file
/// name, a peer or a command line may bring. `Json` is nlohmann::json or nlohmann::ordered_json.

/// Writes the control characters that JSON allows in texts, DEL and those of C1, as escapes: a
/// terminal obeys them, and a text may be a peer's. `json` is printed JSON, which has them nowhere
/// else.
inline std::string EscapeControls(const std::string& json) {
  std::string escaped;
  escaped.reserve(json.size());
  for (size_t i = 0; i < json.size(); ++i) {
    const auto byte = static_cast<unsigned char>(json[i]);
    const auto next = i + 1 < json.size() ? static_cast<unsigned char>(json[i + 1]) : 0;
    if (byte == 0x7F) {
      escaped += "\\u007f";
    } else if (byte == 0xC2 && next < 0xA0) {  // U+0080 to U+009F, as UTF-8 writes them.
      constexpr char kDigits[] = "0123456789abcdef";
      escaped += "\\u00";
      escaped += {kDigits[next >> 4], kDigits[next & 15]};
      ++i;
    } else {
      escaped += json[i];
    }
  }
  return escaped;
}

/// Prints without blanks and without a line break.
template <typename Json>
std::string JsonCompact(const Json& json) {
  return EscapeControls(json.dump(-1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace));
}

/// Prints one line, with a line break at its end.
template <typename Json>
std::string JsonLine(const Json& json) {
  return JsonCompact(json) + "\n";
}

/// Prints with an indentation of 2; ends with a line break.
template <typename Json>
std::string JsonText(const Json& json) {
  return EscapeControls(json.dump(2, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace)) +
         "\n";
}

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_JSON_JSON_TEXT_H_
