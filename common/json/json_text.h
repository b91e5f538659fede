#ifndef SLIPSTREAM_COMMON_JSON_JSON_TEXT_H_
#define SLIPSTREAM_COMMON_JSON_JSON_TEXT_H_

#include <string>

namespace slipstream {

/// Functions that print nlohmann's JSON as text; all of the project's JSON is written by them.
/// Bytes that are not UTF-8 become U+FFFD. dump() by default throws on such text, which a file
/// name, a peer or a command line may bring. `Json` is nlohmann::json or nlohmann::ordered_json.

/// Prints without blanks and without a line break.
template <typename Json>
std::string JsonCompact(const Json& json) {
  return json.dump(-1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

/// Prints one line, with a line break at its end.
template <typename Json>
std::string JsonLine(const Json& json) {
  return JsonCompact(json) + "\n";
}

/// Prints with an indentation of 2; ends with a line break.
template <typename Json>
std::string JsonText(const Json& json) {
  return json.dump(2, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace) + "\n";
}

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_JSON_JSON_TEXT_H_
